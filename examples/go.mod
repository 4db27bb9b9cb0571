module github.com/homeostat/homeostat/examples

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.50.0
)

replace (
	github.com/homeostat/homeostat => ..
	github.com/homeostat/homeostat/backend/file => ../backend/file
)
