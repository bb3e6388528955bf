// Package jsonpointer converts between names and tokens of JSON pointers (RFC 6901).
package jsonpointer

import "strings"

var (
	toToken = strings.NewReplacer("~", "~0", "/", "~1")
	toName  = strings.NewReplacer("~1", "/", "~0", "~")
)

// Token returns the token that stands for a name in a pointer.
func Token(name string) string { return toToken.Replace(name) }

// Name returns the name that a token of a pointer stands for. It leaves a ~ that begins neither ~0 nor
// ~1 unchanged.
func Name(token string) string { return toName.Replace(token) }
