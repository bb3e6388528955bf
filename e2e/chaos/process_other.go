//go:build !linux

package chaos

import "syscall"

// endsWithUs returns nil, because this system has no such feature.
func endsWithUs() *syscall.SysProcAttr { return nil }
