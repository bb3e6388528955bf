package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of times in /proc. The kernel fixes it at 100 Hz for
// user space on every architecture that Go supports.
const clockTick = 10 * time.Millisecond

// processCPU returns the CPU time of all threads of a process, including ended
// ones. It reads the process clock, in nanoseconds, or if that is not permitted,
// ticks of 10 ms.
func processCPU(pid int) (time.Duration, bool) {
	var t unix.Timespec
	// clock_getcpuclockid(3): the clock of a process is the complement of its ID.
	clock := int32(^pid)<<3 | 2 // process IDs are below 1<<22
	if err := unix.ClockGettime(clock, &t); err == nil {
		return time.Duration(t.Nano()), true
	}
	s, err := readStat(strconv.Itoa(pid))
	return s.used, err == nil
}

// ownCPU returns the CPU time of this process.
func ownCPU() (time.Duration, bool) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}

// descendants returns the direct and indirect children of the roots.
func descendants(roots []int) []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	parents := make(map[int]int, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(name); err == nil {
			parents[pid] = s.parent
		}
	}
	return below(parents, roots)
}

type stat struct {
	parent int
	used   time.Duration
}

func readStat(pid string) (stat, error) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(text)
}

var errStat = errors.New("not a line of /proc/PID/stat")

// parseStat parses the parent and the CPU time. The command in parentheses may
// itself contain parentheses and spaces, so parsing starts after the last one.
func parseStat(text []byte) (stat, error) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return stat{}, errStat
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 13 {
		return stat{}, errStat
	}
	parent, err1 := strconv.Atoi(string(fields[1]))
	user, err2 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err3 := strconv.ParseInt(string(fields[12]), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return stat{}, errStat
	}
	return stat{parent: parent, used: time.Duration(user+system) * clockTick}, nil
}

// peakMemory returns the peak resident memory of the process in bytes.
func peakMemory(pid int) (int64, bool) { return memoryOf(pid, "VmHWM") }

// residentMemory returns the resident memory of the process in bytes.
func residentMemory(pid int) (int64, bool) { return memoryOf(pid, "VmRSS") }

func memoryOf(pid int, field string) (int64, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	_, rest, ok := strings.Cut(string(text), "\n"+field+":")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); !ok || err != nil {
		return 0, false
	}
	return kib << 10, true
}
