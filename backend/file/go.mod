module github.com/homeostat/homeostat/backend/file

go 1.26.0

require github.com/homeostat/homeostat v0.0.0

replace github.com/homeostat/homeostat => ../..
