package sandbox

import (
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"

	"github.com/callyard/callyard/internal/launch/egress"
	"github.com/callyard/callyard/internal/launch/hostpath"
)

// Spec is a checked sandbox. Only [Resolve] creates one.
type Spec struct {
	Server string        // id of the server
	Image  string        // as the operator wrote it
	Time   time.Duration // maximum time from hand-over to kill
	Pool   int           // number of containers to start in advance

	imageID   string // set by Engine.Pin
	user      string // if empty, each container has its own
	env       map[string]string
	config    container.Config
	host      container.HostConfig
	settings  []Setting
	places    map[string]hostpath.Place // of mounted host paths, by target
	egress    egress.List
	forwarder *Spec // forwards connections to the egress list; set by Engine.Pin, nil if the list is empty
}

// ImageID returns the id of the image. It is empty before [Engine.Pin].
func (s *Spec) ImageID() string { return s.imageID }

type resolver struct {
	config  *Config
	faults  *Faults
	widened []string
	places  map[string]hostpath.Place
}

// Resolve checks the settings of a server's container and adds every default. It does not contact
// an engine. The error is a *[Faults].
func Resolve(server string, c Config) (Spec, error) {
	r := &resolver{config: &c, faults: &Faults{Server: server}, places: map[string]hostpath.Place{}}
	h := container.HostConfig{
		NetworkMode:    "none",
		IpcMode:        "none",
		CgroupnsMode:   "private",
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges:true", "seccomp=" + profile},
		ReadonlyRootfs: true,
		LogConfig:      container.LogConfig{Type: "none"}, // stdout carries the protocol, and a log file would fill the disk
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		AutoRemove:     true,
		Init:           new(bool),
		Runtime:        c.Runtime,
	}
	r.image(c.Image)
	r.limits(&h)
	r.namespaces(&h)
	r.rights(&h)
	way := r.egress()
	r.meaningless()
	h.Mounts = r.volumes(c.Volumes)
	r.scratch(&h)
	user := r.user()
	r.text()
	for _, name := range c.Allow {
		if !slices.Contains(r.widened, name) {
			r.faults.add("allow", "%q is allowed, but no setting requires it; remove it.", name)
		}
	}
	if len(r.faults.List) > 0 {
		return Spec{}, r.faults
	}

	s := Spec{Server: server, Image: c.Image, Time: c.Time, Pool: c.Pool, user: user, env: maps.Clone(c.Env), host: h, places: r.places, egress: way}
	if s.Time == 0 {
		s.Time = DefaultTime
	}
	s.config = container.Config{
		Hostname:     "sandbox",
		AttachStdin:  true,
		AttachStdout: true,
		AttachStderr: true,
		OpenStdin:    true,
		StdinOnce:    true, // stdin closes when the worker dies
		Cmd:          slices.Clone(c.Args),
		WorkingDir:   c.Workdir,
		Healthcheck:  &container.HealthConfig{Test: []string{"NONE"}}, // it would run next to the call
		Env:          environment(c.Env, way),
	}
	if c.Command != "" {
		s.config.Entrypoint = []string{c.Command}
	}
	s.settings = r.describe(&s)
	return s, nil
}

// environment returns the variables in addition to those of the image.
func environment(env map[string]string, way egress.List) []string {
	defaults := map[string]string{"HOME": "/tmp"} // the only writable place
	if !way.Empty() {
		// Programs disagree on upper and lower case.
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			defaults[name] = "http://" + egress.ForwarderAddress
		}
		defaults["NO_PROXY"], defaults["no_proxy"] = "localhost,127.0.0.1", "localhost,127.0.0.1"
		defaults["NODE_USE_ENV_PROXY"] = "1" // otherwise Node.js ignores the variables
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if _, own := env[name]; !own {
			out = append(out, name+"="+defaults[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

func (r *resolver) image(ref string) {
	switch {
	case ref == "":
		r.faults.add("image", "is missing; set an image that the engine has, preferably by digest.")
	case strings.HasPrefix(ref, "-"), strings.ContainsAny(ref, " \t\r\n\x00"), strings.Contains(ref, "://"):
		r.faults.add("image", "%q is not an image name; write name:tag, name@sha256:… or an id.", ref)
	}
}

// limits checks and sets the limits of the container.
func (r *resolver) limits(h *container.HostConfig) {
	c := r.config
	memory := r.amount("memory", c.Memory, DefaultMemory, 16<<20, 1<<40)
	pids := r.amount("pids", c.PIDs, DefaultPIDs, 1, 32768)
	files := r.amount("files", c.Files, DefaultFiles, 16, 1<<20)
	file := r.amount("file_size", c.File, DefaultFileSize, 0, 1<<40)
	switch {
	case c.MemorySwap == 0, c.MemorySwap == memory:
		h.MemorySwap = memory
	case r.widens("memory_swap", "memory-swap", "swap lets a container use more than its memory, at the cost of the host's disk; remove it."):
		h.MemorySwap = c.MemorySwap
	}
	h.Memory, h.PidsLimit = memory, &pids
	if memory == unlimited {
		h.Memory, h.MemorySwap = 0, unlimited
	}
	cpus := c.CPUs
	switch {
	case cpus == 0:
		cpus = DefaultCPUs
	case cpus < 0:
		r.widens("cpus", "cpus:unlimited", "without a limit one call can use every core; set a number such as 0.5.")
		cpus = 0
	case cpus < 0.01, cpus > 1024, math.IsNaN(cpus):
		r.faults.add("cpus", "%v is not a valid number of cores; write a number from 0.01 to 1024.", cpus)
		cpus = 0
	}
	h.NanoCPUs = int64(cpus * 1e9)
	// Not nproc: it counts a user's processes in all containers.
	h.Ulimits = []*units.Ulimit{{Name: "core"}}
	if files != unlimited {
		h.Ulimits = append(h.Ulimits, &units.Ulimit{Name: "nofile", Soft: files, Hard: files})
	}
	if file != unlimited {
		h.Ulimits = append(h.Ulimits, &units.Ulimit{Name: "fsize", Soft: file, Hard: file})
	}
	if c.Time < 0 || c.Time > 24*time.Hour {
		r.faults.add("time", "must be from 1ms to 24h.")
	}
	if c.Pool < 0 || c.Pool > mostPool {
		r.faults.add("pool", "must be from 0 to %d containers.", mostPool)
	}
}

// amount returns the value of a limit, or its default for 0.
func (r *resolver) amount(key string, value, fallback, least, most int64) int64 {
	switch {
	case value == 0:
		return fallback
	case value < 0:
		r.widens(key, key+":unlimited", "without a limit a call can use all resources of the host; set a number.")
		return unlimited
	case value < least || value > most:
		r.faults.add(key, "%d is out of range; write a number from %d to %d.", value, least, most)
		return fallback
	}
	return value
}

// scratch sets up the only writable place.
func (r *resolver) scratch(h *container.HostConfig) {
	size := r.config.Tmpfs
	if size == 0 {
		size = DefaultTmpfs
	}
	if size < 4096 || size > 1<<34 {
		r.faults.add("tmpfs", "%d is out of range; write a number of bytes from 4096 to 16 GiB.", size)
		return
	}
	for _, m := range h.Mounts {
		if m.Target == "/tmp" {
			return
		}
	}
	h.Tmpfs = map[string]string{"/tmp": tmpfs(size)}
}

// tmpfs returns the options of a file system in memory from which nothing can be executed. Files,
// even empty ones, use memory of the host.
func tmpfs(size int64) string {
	return "rw,noexec,nosuid,nodev,mode=1777,nr_inodes=4096,size=" + strconv.FormatInt(size, 10)
}

// text refuses texts that the engine could misinterpret.
func (r *resolver) text() {
	c := r.config
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(c.Env[name], 0) {
			r.faults.add("env", "the variable %q has an invalid name or value; names must not contain \"=\", and neither can contain NUL.", name)
		}
	}
	if strings.ContainsRune(c.Command, 0) || slices.ContainsFunc(c.Args, func(a string) bool { return strings.ContainsRune(a, 0) }) {
		r.faults.add("command", "it or its arguments contain a NUL character; remove it.")
	}
	if c.Workdir != "" && !path.IsAbs(c.Workdir) {
		r.faults.add("workdir", "%q is not absolute; write an absolute path.", c.Workdir)
	}
}
