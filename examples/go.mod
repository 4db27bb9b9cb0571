module github.com/homeostat/homeostat/examples

go 1.26.0

require (
	github.com/homeostat/homeostat v0.0.0
	github.com/homeostat/homeostat/backend/file v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/term v0.48.0
	golang.org/x/time v0.16.0 // indirect
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.50.0
)

replace (
	github.com/homeostat/homeostat => ..
	github.com/homeostat/homeostat/backend/file => ../backend/file
)
