// Package spreadsheet makes texts safe for programs that open CSV files.
package spreadsheet

import "strings"

// Text returns a text for a cell. One that a spreadsheet would run as a formula begins with a
// quotation mark (OWASP, CSV injection).
func Text(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
