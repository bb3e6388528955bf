package chaos

import "syscall"

// endsWithUs makes the kernel kill a process when this process dies.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
