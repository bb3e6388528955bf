package proc

import "syscall"

// EndsWithUs has the kernel end a process when the tests are ended from outside.
func EndsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
