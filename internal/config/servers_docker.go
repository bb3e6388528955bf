package config

import (
	"fmt"
	"log/slog"
	"time"
)

// Docker selects the container of a server. The first four keys are those of MCP Bridge. Package
// sandbox defines the meaning of all keys and rejects invalid ones.
type Docker struct {
	Image   string            `yaml:"image"`   // name:tag, name@sha256:… or the id of a local image
	Volumes []string          `yaml:"volumes"` // HOST:CONTAINER:ro
	Network string            `yaml:"network"` // only "none"
	Env     map[string]string `yaml:"env"`     // in addition to that of the image

	Command string        `yaml:"command"` // replaces the entry point of the image
	Args    []string      `yaml:"args"`    // replaces the arguments of the image
	Workdir string        `yaml:"workdir"`
	Memory  int64         `yaml:"memory"`    // bytes including swap; -1 means unlimited
	CPUs    float64       `yaml:"cpus"`      // number of cores; -1 means unlimited
	PIDs    int64         `yaml:"pids"`      // processes and threads; -1 means unlimited
	Tmpfs   int64         `yaml:"tmpfs"`     // bytes of /tmp, counted as memory
	Files   int64         `yaml:"files"`     // open files per process
	File    int64         `yaml:"file_size"` // bytes of the largest file
	User    string        `yaml:"user"`      // UID or UID:GID; if empty, each container gets its own
	Runtime string        `yaml:"runtime"`   // a runtime of the engine, such as runsc
	Egress  []string      `yaml:"egress"`    // allowed HOST:PORT, reached through the egress proxy; none if empty
	Time    time.Duration `yaml:"time"`      // maximum time from hand-over to kill
	Pool    int           `yaml:"pool"`      // number of containers started in advance

	// Allow names permissions beyond those of the sandbox, such as "network:bridge" or
	// "writable-volume:/srv/out".
	Allow []string `yaml:"allow"`

	// The following keys are known so that they can be rejected with a clear sentence. Most can be
	// allowed by name.
	ReadOnly     *bool             `yaml:"read_only"`
	Privileged   bool              `yaml:"privileged"`
	CapAdd       []string          `yaml:"cap_add"`
	SecurityOpt  []string          `yaml:"security_opt"`
	Devices      []string          `yaml:"devices"`
	GPUs         string            `yaml:"gpus"`
	PIDMode      string            `yaml:"pid"`
	IPCMode      string            `yaml:"ipc"`
	UTSMode      string            `yaml:"uts"`
	UsernsMode   string            `yaml:"userns"`
	CgroupnsMode string            `yaml:"cgroup"`
	CgroupParent string            `yaml:"cgroup_parent"`
	GroupAdd     []string          `yaml:"group_add"`
	Sysctls      map[string]string `yaml:"sysctls"`
	Ulimits      map[string]int64  `yaml:"ulimits"`
	MemorySwap   int64             `yaml:"memory_swap"`
	OOMDisable   bool              `yaml:"oom_kill_disable"`
	ShmSize      int64             `yaml:"shm_size"`
	VolumesFrom  []string          `yaml:"volumes_from"`
	Ports        []string          `yaml:"ports"`
	ExtraHosts   []string          `yaml:"extra_hosts"`
	Restart      string            `yaml:"restart"`
	LogDriver    string            `yaml:"log_driver"`
	Pull         string            `yaml:"pull"`
	TTY          bool              `yaml:"tty"`
}

// LogValue returns the parts of the container settings that may be shown.
func (d Docker) LogValue() slog.Value {
	return slog.GroupValue(appendShown([]slog.Attr{slog.String("image", d.Image)},
		"volumes", d.Volumes, "network", d.Network, "env", names(d.Env), "command", d.Command, "args", notShown(d.Args), "allow", d.Allow,
	)...)
}

// String returns the parts of the container settings that may be shown.
func (d Docker) String() string { return d.LogValue().String() }

// Format prints String for every verb.
func (d Docker) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, d.String()) }

// MarshalJSON writes the parts that may be shown.
func (d Docker) MarshalJSON() ([]byte, error) { return shownJSON(d.LogValue()) }
