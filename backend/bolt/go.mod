module github.com/homeostat/homeostat/backend/bolt

go 1.26.0

require github.com/homeostat/homeostat v0.0.0

require (
	go.etcd.io/bbolt v1.5.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
)

replace github.com/homeostat/homeostat => ../..
