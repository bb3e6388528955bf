package setup

import (
	"math"
	"runtime"
	"testing"
	"testing/fstest"
)

func TestWorkerLimitsGOMAXPROCSOnSmallMachines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for had, keeps := range map[int]int{1: 1, 2: 1, 3: 3, 8: 8, 64: 64} {
		t.Setenv("GOMAXPROCS", "")
		runtime.GOMAXPROCS(had)
		LimitProcessors()
		if got := runtime.GOMAXPROCS(0); got != keeps {
			t.Errorf("of %d it keeps %d, not %d", had, got, keeps)
		}
		t.Setenv("GOMAXPROCS", "2") // the runtime has already applied the environment
		runtime.GOMAXPROCS(2)
		LimitProcessors()
		if got := runtime.GOMAXPROCS(0); got != 2 {
			t.Errorf("GOMAXPROCS says 2, and it keeps %d", got)
		}
	}
}

func TestGCPercentDecreasesWithHeapSize(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		live    uint64
		percent int
	}{{0, 400}, {4 * mib, 400}, {24 * mib, 400}, {96 * mib, 100}, {192 * mib, 100}, {256 * mib, 75}, {384 * mib, 50}, {1 << 40, 50}} {
		if got := percentFor(c.live, 96*mib); got != c.percent {
			t.Errorf("%d MiB grow by %d percent, want %d", c.live/mib, got, c.percent)
		}
	}
	for _, c := range []struct{ used, limit uint64 }{{0, 448 * mib}, {360 * mib, 448 * mib}, {400 * mib, 480 * mib}, {10_000 * mib, 11_040 * mib}} {
		if got := limitFor(c.used, math.MaxInt64); got != int64(c.limit) {
			t.Errorf("with %d MiB in use the limit is %d MiB, want %d", c.used/mib, got/mib, c.limit/mib)
		}
	}
}

func TestTheMemoryLimitOfTheCgroupBoundsTheGoRuntime(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		files map[string]string
		want  int64 // 0 means none
	}{
		"no cgroups": {},
		"version 2 in a container": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "100663296\n",
		}, 96 * mib},
		"version 2 without a limit": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n",
		}, 0},
		"version 2 in a service, whose slice has a smaller limit": {map[string]string{
			"proc/self/cgroup":                                        "0::/tools.slice/callyard.service\n",
			"sys/fs/cgroup/tools.slice/memory.max":                    "134217728\n",
			"sys/fs/cgroup/tools.slice/callyard.service/memory.max":   "268435456\n",
			"sys/fs/cgroup/other.slice/callyard.service/memory.max":   "1048576\n",
			"sys/fs/cgroup/tools.slice/callyard.service/x/memory.max": "1048576\n",
		}, 128 * mib},
		"version 1 in a container, with the path of the host": {map[string]string{
			"proc/self/cgroup":                           "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "100663296\n",
		}, 96 * mib},
		"version 1 without a limit": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 9223372036854771712},
		"a path outside the namespace": {map[string]string{
			"proc/self/cgroup": "0::/../../other\n", "sys/fs/cgroup/memory.max": "100663296\n",
		}, 96 * mib},
	} {
		root := fstest.MapFS{}
		for name, text := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if c.want == 0 {
			c.want = math.MaxInt64
		}
		if got := cgroupMemory(root); got != c.want {
			t.Errorf("%s: the limit is %d, want %d", name, got, c.want)
		}
	}
	for _, c := range []struct {
		cgroup  int64
		servers int
		want    int64
	}{{100 * mib, 0, 90 * mib}, {100 * mib, 1, 50 * mib}, {1000 * mib, 2, 772 * mib}, {1000 * mib, 100, 500 * mib}} {
		if got := limitFor(1<<40, mostMemory(c.cgroup, c.servers)); got != c.want {
			t.Errorf("with %d servers in %d MiB the limit is %d, want %d", c.servers, c.cgroup/mib, got, c.want)
		}
	}
	if got := limitFor(0, mostMemory(100*mib, 0)); got != 90*mib {
		t.Errorf("at the start the limit is %d, above that of the cgroup", got)
	}
	if got := limitFor(0, mostMemory(math.MaxInt64, 5)); got != memoryFreely {
		t.Errorf("without a cgroup the limit is %d", got)
	}
}
