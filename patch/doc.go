// Package patch makes and applies changes to JSON documents.
package patch
