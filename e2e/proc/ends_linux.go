package proc

import "syscall"

// EndsWithUs makes the kernel kill a process when the tests are killed.
func EndsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
