package chaos

import "syscall"

// endsWithUs has the kernel end a process when this one is ended from outside.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
