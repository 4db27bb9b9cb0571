// Package tools is a module of its own for the programs that check the others,
// so that their requirements stay out of the library's go.mod.
package tools
