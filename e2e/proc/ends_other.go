//go:build !linux

package proc

import "syscall"

// EndsWithUs returns nil, because this system has no such feature.
func EndsWithUs() *syscall.SysProcAttr { return nil }
