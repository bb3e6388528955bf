//go:build !linux

package setup

// dropProgram does nothing: elsewhere the pages of the program stay mapped.
func dropProgram() {}
