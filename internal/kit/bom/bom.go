// Package bom removes the byte-order mark with which some editors and spreadsheets begin a
// file of UTF-8. JSON does not permit one (RFC 8259, section 8.1), but readers may ignore it.
package bom

import "bytes"

// Trim returns the text of a file without the byte-order mark at its start.
func Trim(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) }
