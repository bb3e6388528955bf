package launch

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// identity identifies a process permanently: a pid can be reused, a pid with its start time cannot.
type identity struct {
	pid   int
	start uint64 // in clock ticks since boot
}

// treeOf returns the descendants of a process. It skips reapers of other launchers and their
// descendants, which must do their own work when their worker dies.
func treeOf(pid int) []identity {
	var tree []identity
	todo := []int{pid}
	for len(todo) > 0 {
		parent := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, child := range childrenOf(parent) {
			id := identity{child, startOf(child)}
			if id.start == 0 || isReaperEnviron(readProc(child, "environ", nil)) {
				continue
			}
			tree = append(tree, id)
			todo = append(todo, child)
		}
	}
	return tree
}

// childrenOf reads the children of each thread, because a child belongs to the thread that created it.
func childrenOf(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, err := readNames(dir)
	if err != nil {
		return nil
	}
	var children []int
	for _, thread := range threads {
		list, _ := os.ReadFile(dir + thread + "/children")
		for field := range bytes.FieldsSeq(list) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// startOf returns the start time of a process, or 0 if it has ended.
func startOf(pid int) uint64 { return parseStart(readProc(pid, "stat", nil)) }

// parseStart returns the start time, field 22 of /proc/PID/stat. The program name, field 2, may contain
// spaces and parentheses.
func parseStart(stat []byte) uint64 {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 20 {
		return 0
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return 0
	}
	return start
}

func killTree(tree []identity) {
	for _, id := range tree {
		killIf(id.pid, func() bool { return startOf(id.pid) == id.start })
	}
}

// killIf kills the process with the pid if still returns true after a descriptor holds the process, so
// that the pid cannot be reused in between.
func killIf(pid int, still func() bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ENOSYS || err == unix.EPERM {
		if still() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return
	}
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if still() {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// killMatching kills every process whose cookie matches until two scans in a row find none, because one
// scan can miss a process that is being forked. It gives up after limit.
func killMatching(match func(cookie []byte) bool, limit time.Duration) {
	deadline := time.Now().Add(limit)
	var buf []byte
	for clean := 0; clean < 2; clean++ {
		found := false
		found, buf = reap(match, buf)
		if found {
			if time.Now().After(deadline) {
				return
			}
			clean = -1
			time.Sleep(2 * time.Millisecond) // wait for the killed processes to die
		}
	}
}

// reap scans every process once. A dead process that was not reaped has no environment and does not
// count.
func reap(match func(cookie []byte) bool, buf []byte) (found bool, _ []byte) {
	names, err := readNames("/proc")
	if err != nil {
		return false, buf
	}
	self := os.Getpid()
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self {
			continue
		}
		buf = readProc(pid, "environ", buf)
		if carries(buf, match) {
			found = true
			killIf(pid, func() bool { return carries(readProc(pid, "environ", nil), match) })
		}
	}
	return found, buf
}

// maxProcFile limits the size read from one file, in bytes; an environment can have megabytes.
const maxProcFile = 8 << 20

// readProc reads a file of a process into buf and returns what it could read. A process that has ended
// or belongs to another user has nothing to read.
func readProc(pid int, file string, buf []byte) []byte {
	buf = buf[:0]
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return buf
	}
	defer func() { _ = unix.Close(fd) }()
	if cap(buf) == 0 {
		buf = make([]byte, 0, 8<<10)
	}
	for len(buf) < maxProcFile {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		buf = buf[:len(buf)+n]
	}
	return buf
}
