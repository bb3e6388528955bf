package setup

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// mostMemory returns the memory that the Go runtime may use in a cgroup with that limit. The rest is
// for memory that it does not count: buffers of sockets and the pages of files, and half of it for
// the processes of a worker's servers.
func mostMemory(limit int64, servers int) int64 {
	if servers > 0 {
		return limit / 2
	}
	return limit / 10 * 9
}

// cgroupMemory returns the smallest memory limit of the cgroups of this process, or
// [math.MaxInt64] if there is none. root is the root of the file system. In a container, the path in
// /proc/self/cgroup may be that of the host, where the container sees only its own cgroup.
func cgroupMemory(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return least // not Linux, or no cgroups
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		mount, file := "", ""
		switch controllers := fields[1]; {
		case controllers == "":
			mount, file = "sys/fs/cgroup", "memory.max"
		case controllers == "memory":
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// path.Join removes "..", with which the kernel shows a cgroup outside the namespace.
		for at := path.Join("/", fields[2]); ; at = path.Dir(at) {
			if n, ok := bytesIn(root, path.Join(mount, at, file)); ok {
				least = min(least, n)
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

// bytesIn reads a limit. Without a limit version 2 says "max", and version 1 a number above all
// memory.
func bytesIn(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil && n > 0
}
