//go:build !linux

package chaos

import "syscall"

// endsWithUs has nothing to offer here: the system knows no such request.
func endsWithUs() *syscall.SysProcAttr { return nil }
