//go:build !linux

package setup

// dropProgram does nothing on other systems: the pages of the program stay mapped.
func dropProgram() {}
