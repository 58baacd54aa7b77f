// Package testdata holds sample documents: invoices of a Czech company as a sender would publish them. They are made up,
// and so are the companies and their numbers.
//
// One file is one event as files have it: {"evidence", "op", "key", "document"}; the order of the names is the order
// in which they are published.
package testdata

import (
	"embed"
	"io/fs"
)

//go:embed invoices/*.json
var files embed.FS

// Invoices is the folder of sample events. It is part of the binary, so that the demo runs from anywhere.
func Invoices() fs.FS {
	sub, err := fs.Sub(files, "invoices")
	if err != nil {
		panic(err) // a fixed name that the line above has embedded
	}
	return sub
}
