// Package bom removes the byte-order mark that some editors and spreadsheets write at the start of
// a UTF-8 file. JSON does not permit one (RFC 8259, section 8.1), but readers may ignore it.
package bom

import "bytes"

// Trim returns the text without a byte-order mark at its start.
func Trim(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) }
