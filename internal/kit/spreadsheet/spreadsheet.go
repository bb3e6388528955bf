// Package spreadsheet makes text safe for programs that open CSV files.
package spreadsheet

import "strings"

// Text returns a text for a cell. It adds a leading quotation mark if a spreadsheet would
// run the text as a formula (OWASP, CSV injection).
func Text(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
