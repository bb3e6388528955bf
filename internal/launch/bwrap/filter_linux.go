//go:build amd64 || arm64

package bwrap

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// denied are system calls that no MCP server needs and that had kernel vulnerabilities. They fail
// with an error.
var denied = [...]uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
	unix.SYS_MBIND, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_SET_MEMPOLICY, unix.SYS_PERSONALITY, unix.SYS_MEMFD_SECRET,
}

// families are the allowed socket families. Without a network they reach only loopback.
var families = [...]uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// Offsets in struct seccomp_data.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArg0 = 16 // the lower half; both architectures are little-endian
	x32Bit     = 0x40000000
)

// filter returns the kernel program in the format that bwrap reads.
func filter() []byte {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		give  = unix.BPF_RET | unix.BPF_K
	)
	refuse := uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
	program := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, Jt: 1, K: auditArch},
		{Code: give, K: unix.SECCOMP_RET_KILL_PROCESS}, // system calls of another architecture have other numbers
		{Code: load, K: offsetCall},
		{Code: least, Jf: 1, K: x32Bit},
		{Code: give, K: refuse},
	}
	for _, call := range denied {
		program = append(program, unix.SockFilter{Code: equal, Jf: 1, K: call}, unix.SockFilter{Code: give, K: refuse})
	}
	program = append(program,
		unix.SockFilter{Code: equal, Jt: 1, K: unix.SYS_SOCKET},
		unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: load, K: offsetArg0})
	for _, family := range families {
		program = append(program, unix.SockFilter{Code: equal, Jf: 1, K: family}, unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW})
	}
	program = append(program, unix.SockFilter{Code: give, K: uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EAFNOSUPPORT)})
	var out bytes.Buffer
	for _, instruction := range program {
		_ = binary.Write(&out, binary.NativeEndian, instruction) // writing to a buffer cannot fail
	}
	return out.Bytes()
}
