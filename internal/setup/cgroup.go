package setup

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// serverMemory is the memory that is left to the processes of one server.
const serverMemory = 64 << 20

// mostMemory returns the memory that the Go runtime may use in a cgroup with that limit. The rest is
// for memory that the runtime does not count: buffers of sockets, the pages of files, and the
// processes of servers, which get at most four tenths.
func mostMemory(limit int64, servers int) int64 {
	return limit/10*9 - min(limit/10*4, int64(servers)*serverMemory)
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
