// Package bolt is a store in one file.
package bolt
