//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempt tries an action that a sandbox forbids. A nil error means that it succeeded.
type attempt func(args map[string]string) (how string, err error)

var attempts = map[string]attempt{
	"interfaces":    interfaces,
	"route-public":  func(map[string]string) (string, error) { return route("192.0.2.1:80") },
	"route-cloud":   func(map[string]string) (string, error) { return route("169.254.169.254:80") },
	"host-gateway":  hostGateway,
	"raw-socket":    func(map[string]string) (string, error) { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
	"packet-socket": func(map[string]string) (string, error) { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) },
	"alg-socket":    func(map[string]string) (string, error) { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
	"vsock":         func(map[string]string) (string, error) { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"rxrpc-socket":  func(map[string]string) (string, error) { return socket(unix.AF_RXRPC, unix.SOCK_DGRAM, unix.AF_INET) },
	"write-root":    func(map[string]string) (string, error) { return write("/written") },
	"write-hosts":   func(map[string]string) (string, error) { return write("/etc/hosts") },
	"write-own":     func(map[string]string) (string, error) { return write("/prober") },
	"write-kernel":  func(map[string]string) (string, error) { return write("/proc/sys/kernel/core_pattern") },
	"write-cgroup":  writeCgroup,
	"shared-memory": func(map[string]string) (string, error) { return write("/dev/shm/written") },
	"exec-tmp":      execTmp,
	"fill-disk":     fillDisk,
	"many-files":    manyFiles,
	"root-user":     rootUser,
	"capabilities":  capabilities,
	"new-rights":    newRights,
	"bounding-set":  boundingSet,
	"mount":         func(map[string]string) (string, error) { return worked(unix.Mount("none", "/tmp", "tmpfs", 0, "")) },
	"user-namespace": func(map[string]string) (string, error) {
		return spawn("true", func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER} })
	},
	"chroot": func(map[string]string) (string, error) { return worked(unix.Chroot("/tmp")) },
	"mknod": func(map[string]string) (string, error) {
		return worked(unix.Mknod("/tmp/disk", unix.S_IFBLK|0o666, 1<<8))
	},
	"chown":       chown,
	"hostname":    func(map[string]string) (string, error) { return worked(unix.Sethostname([]byte("mine"))) },
	"clock":       func(map[string]string) (string, error) { return clock() },
	"ptrace":      ptrace,
	"io-uring":    func(map[string]string) (string, error) { return call(unix.SYS_IO_URING_SETUP, 1, ring()) },
	"userfaultfd": func(map[string]string) (string, error) { return call(unix.SYS_USERFAULTFD, 1, 0) },
	"bpf":         func(map[string]string) (string, error) { return call(unix.SYS_BPF, 0, 0) },
	"perf":        func(map[string]string) (string, error) { return call(unix.SYS_PERF_EVENT_OPEN, ring(), 0) },
	"keyring": func(map[string]string) (string, error) {
		return call(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2))
	},
	"kernel-module": func(map[string]string) (string, error) { return kernelModule() },
	"engine-socket": func(map[string]string) (string, error) {
		return opens("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock")
	},
	"devices":         func(map[string]string) (string, error) { return devices() },
	"kernel-memory":   func(map[string]string) (string, error) { return kernelMemory() },
	"other-processes": otherProcesses,
	"fork-bomb":       forkBomb,
}

func worked(err error) (string, error) { return "it worked", err }

func interfaces(map[string]string) (string, error) {
	list, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range list {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			return i.Name, nil
		}
	}
	return "", errors.New("only loopback")
}

// route asks the kernel for a route to an address. It sends no packet.
func route(address string) (string, error) {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return "a way from " + conn.LocalAddr().String(), nil
}

func hostGateway(args map[string]string) (string, error) {
	conn, err := net.DialTimeout("tcp", args["address"], 2*time.Second)
	if err != nil {
		return "", err
	}
	return "connected", conn.Close()
}

func socket(family, kind, protocol int) (string, error) {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return "", err
	}
	return "a socket", unix.Close(fd)
}

func write(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	return "opened " + path, f.Close()
}

func writeCgroup(map[string]string) (string, error) {
	places, _ := filepath.Glob("/sys/fs/cgroup/*")
	for _, place := range append(places, "/sys/fs/cgroup") {
		if err := os.Mkdir(filepath.Join(place, "mine"), 0o700); err == nil {
			return place, os.Remove(filepath.Join(place, "mine"))
		}
	}
	return "", fmt.Errorf("none of %d places can be written", len(places)+1)
}

func execTmp(map[string]string) (string, error) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", err
	}
	_ = os.Mkdir("/tmp", 0o777)                                    //nolint:gosec // the probe wants what any program may do there
	if err := os.WriteFile("/tmp/copy", self, 0o700); err != nil { //nolint:gosec // as above
		return "", err
	}
	defer func() { _ = os.Remove("/tmp/copy") }()
	return worked(exec.Command("/tmp/copy", "true").Run())
}

// fillDisk writes until it is stopped, or has written 64 MiB.
func fillDisk(map[string]string) (string, error) {
	_ = os.Mkdir("/tmp", 0o777) //nolint:gosec // the probe wants what any program may do there
	defer func() { _ = os.Remove("/tmp/full") }()
	f, err := os.Create("/tmp/full") //nolint:gosec // as above
	if err != nil {
		return "", err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for n := range 64 {
		if _, err := f.Write(block); err != nil {
			return "", fmt.Errorf("stopped after %d MiB: %w", n, err)
		}
	}
	return "64 MiB", nil
}

func manyFiles(map[string]string) (string, error) {
	var open []*os.File
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	for range 1024 {
		f, err := os.Open("/dev/null")
		if err != nil {
			return "", fmt.Errorf("stopped after %d: %w", len(open), err)
		}
		open = append(open, f)
	}
	return "1024", nil
}

func rootUser(map[string]string) (string, error) {
	if os.Getuid() == 0 || os.Getgid() == 0 {
		return "it is root", nil
	}
	return worked(syscall.Setuid(0))
}

func status(key string) string {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); name == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func capabilities(map[string]string) (string, error) {
	for _, key := range []string{"CapEff", "CapPrm", "CapInh", "CapAmb"} {
		if v := status(key); strings.Trim(v, "0") != "" {
			return key + " " + v, nil
		}
	}
	return "", errors.New("none")
}

func boundingSet(map[string]string) (string, error) {
	if v := status("CapBnd"); strings.Trim(v, "0") != "" {
		return v, nil
	}
	return "", errors.New("empty")
}

func newRights(map[string]string) (string, error) {
	if status("NoNewPrivs") == "1" && status("Seccomp") == "2" {
		return "", errors.New("no new privileges, and a filter")
	}
	return "NoNewPrivs " + status("NoNewPrivs") + ", Seccomp " + status("Seccomp"), nil
}

func chown(map[string]string) (string, error) {
	_ = os.Mkdir("/tmp", 0o777)                                    //nolint:gosec // the probe wants what any program may do there
	if err := os.WriteFile("/tmp/owned", nil, 0o600); err != nil { //nolint:gosec // as above
		return "", err
	}
	defer func() { _ = os.Remove("/tmp/owned") }()
	return worked(os.Chown("/tmp/owned", 1, 1))
}

func clock() (string, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
		return "", err
	}
	return call(unix.SYS_CLOCK_SETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&now)))
}

func spawn(mode string, prepare func(*exec.Cmd)) (string, error) {
	c := exec.Command("/proc/self/exe", mode)
	prepare(c)
	return worked(c.Run())
}

// ptrace attaches to another process of the container.
func ptrace(map[string]string) (string, error) {
	c := exec.Command("/proc/self/exe", "sleep")
	if err := c.Start(); err != nil {
		return "", err
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(c.Process.Pid))
}

var buffer [256]byte

func ring() uintptr {
	clear(buffer[:])
	return uintptr(unsafe.Pointer(&buffer))
}

// call makes a system call. Only a refusal counts as blocked: EINVAL and similar errors
// mean that the kernel processed it.
func call(number, a, b uintptr) (string, error) {
	result, _, errno := unix.RawSyscall6(number, a, b, 0, 0, 0, 0)
	switch errno {
	case unix.EPERM, unix.ENOSYS, unix.EACCES:
		return "", errno
	case 0:
		if number == unix.SYS_IO_URING_SETUP || number == unix.SYS_USERFAULTFD {
			_ = unix.Close(int(result))
		}
		return "it worked", nil
	}
	return "the kernel answered: " + errno.Error(), nil
}

func kernelModule() (string, error) {
	return call(unix.SYS_INIT_MODULE, 0, 0)
}

func opens(paths ...string) (string, error) {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", errors.New("none is there")
}

func devices() (string, error) {
	list, err := os.ReadDir("/dev")
	if err != nil {
		return "", err
	}
	for _, entry := range list {
		info, err := entry.Info()
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeDevice != 0 && info.Mode()&os.ModeCharDevice == 0 {
			return entry.Name(), nil
		}
	}
	for _, p := range []string{"/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun"} {
		if f, err := os.Open(p); err == nil {
			f.Close()
			return p, nil
		}
	}
	return "", fmt.Errorf("%d, none of them the host's", len(list))
}

func kernelMemory() (string, error) {
	for _, p := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware/dmi"} {
		f, err := os.Open(p)
		if err != nil {
			continue
		}
		n, _ := f.Read(make([]byte, 16))
		entries, _ := f.Readdirnames(-1)
		f.Close()
		if n > 0 || len(entries) > 0 {
			return p, nil
		}
	}
	return "", errors.New("nothing to read")
}

func otherProcesses(map[string]string) (string, error) {
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range list {
		if pid, _ := strconv.Atoi(filepath.Base(p)); pid != os.Getpid() {
			return p, nil
		}
	}
	return "", errors.New("only this one")
}

// forkBomb starts processes until it is stopped, or has started 200.
func forkBomb(map[string]string) (string, error) {
	var started []*exec.Cmd
	defer func() {
		for _, c := range started {
			_ = c.Process.Kill()
		}
		for _, c := range started {
			_ = c.Wait()
		}
	}()
	for range 200 {
		c := exec.Command("/proc/self/exe", "sleep")
		if err := c.Start(); err != nil {
			return "", fmt.Errorf("stopped after %d: %w", len(started), err)
		}
		started = append(started, c)
	}
	return "200 processes", nil
}
