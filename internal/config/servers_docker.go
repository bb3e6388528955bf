package config

import (
	"fmt"
	"log/slog"
	"time"
)

// Docker says in which container a server runs. The first four keys are those of
// MCP Bridge. What they mean, and which are refused, is package sandbox's to say.
type Docker struct {
	Image   string            `yaml:"image"`   // name:tag, name@sha256:… or the id of an image that the engine has
	Volumes []string          `yaml:"volumes"` // HOST:CONTAINER:ro
	Network string            `yaml:"network"` // "none"
	Env     map[string]string `yaml:"env"`     // added to that of the image

	Command string        `yaml:"command"` // replaces the entry point of the image
	Args    []string      `yaml:"args"`    // replace its arguments
	Workdir string        `yaml:"workdir"`
	Memory  int64         `yaml:"memory"`    // bytes, swap included; -1 is unlimited
	CPUs    float64       `yaml:"cpus"`      // of a core; -1 is unlimited
	PIDs    int64         `yaml:"pids"`      // processes and threads; -1 is unlimited
	Tmpfs   int64         `yaml:"tmpfs"`     // bytes of /tmp, part of the memory
	Files   int64         `yaml:"files"`     // open ones in each process
	File    int64         `yaml:"file_size"` // bytes of the largest file
	User    string        `yaml:"user"`      // UID or UID:GID; each container gets its own when empty
	Runtime string        `yaml:"runtime"`   // of the engine, such as runsc
	Egress  []string      `yaml:"egress"`    // HOST:PORT that it may reach, over a proxy of ours; none when empty
	Time    time.Duration `yaml:"time"`      // from hand-over to the kill, at most
	Pool    int           `yaml:"pool"`      // containers started ahead

	// Allow names what may be wider than the sandbox is, such as
	// "network:bridge" or "writable-volume:/srv/out".
	Allow []string `yaml:"allow"`

	// What follows is known so that it can be refused with a sentence. Most of it
	// can be allowed by name.
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

// LogValue returns what may be shown of the container.
func (d Docker) LogValue() slog.Value {
	return slog.GroupValue(appendShown([]slog.Attr{slog.String("image", d.Image)},
		"volumes", d.Volumes, "network", d.Network, "env", names(d.Env), "command", d.Command, "args", notShown(d.Args), "allow", d.Allow,
	)...)
}

// String returns what may be shown of the container.
func (d Docker) String() string { return d.LogValue().String() }

// Format prints String for every verb.
func (d Docker) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, d.String()) }

// MarshalJSON writes what may be shown.
func (d Docker) MarshalJSON() ([]byte, error) { return shownJSON(d.LogValue()) }
