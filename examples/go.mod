module github.com/homeostat/homeostat/examples

go 1.26.0

require (
	github.com/homeostat/homeostat v0.0.0
	github.com/homeostat/homeostat/backend/file v0.0.0
)

replace (
	github.com/homeostat/homeostat => ..
	github.com/homeostat/homeostat/backend/file => ../backend/file
)
