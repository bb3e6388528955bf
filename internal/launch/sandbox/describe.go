package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is one property of a sandbox, for people.
type Setting struct {
	Key   string
	Value string
	// From is the origin: "default", "configured" or "allowed". The last means that the setting makes
	// the sandbox wider than the default.
	From string
}

// Describe returns all properties of the sandbox in a fixed order. It shows names of environment
// variables but no values, and no arguments.
func (s *Spec) Describe() []Setting { return slices.Clone(s.settings) }

// Widened returns the settings that make the sandbox wider than the default.
func (s *Spec) Widened() []string {
	var out []string
	for _, line := range s.settings {
		if line.From == allowed {
			out = append(out, line.Key)
		}
	}
	return out
}

const (
	byDefault  = "default"
	configured = "configured"
	allowed    = "allowed"
)

func (r *resolver) describe(s *Spec) []Setting {
	c, h := r.config, &s.host
	var out []Setting
	add := func(key, value string, set bool) {
		from := byDefault
		if set {
			from = configured
		}
		out = append(out, Setting{key, value, from})
	}
	add("image", s.Image, true)
	if c.Command != "" {
		add("command", c.Command, true)
	}
	if len(c.Args) > 0 {
		add("args", fmt.Sprintf("[%d not shown]", len(c.Args)), true)
	}
	if len(c.Env) > 0 {
		var names []string
		for name := range c.Env {
			names = append(names, name)
		}
		slices.Sort(names)
		add("env", strings.Join(names, ", "), true)
	}
	add("network", string(h.NetworkMode), c.Network != "")
	if !s.egress.Empty() {
		add("egress", s.egress.String()+", through the worker's egress proxy; nothing else, and no DNS lookups inside", true)
	}
	add("read_only", strconv.FormatBool(h.ReadonlyRootfs), c.ReadOnly != nil)
	for target, options := range h.Tmpfs {
		add("tmpfs", target+" "+options, c.Tmpfs != 0)
	}
	for _, m := range h.Mounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		add("volume", m.Source+":"+m.Target+":"+mode, true)
	}
	user := s.user
	if user == "" {
		user = "a separate number for each container, " + strconv.Itoa(firstUser) + " and up"
	}
	add("user", user, c.User != "")
	add("capabilities", listText(h.CapAdd), len(h.CapAdd) > 0)
	add("no_new_privileges", strconv.FormatBool(slices.Contains(h.SecurityOpt, "no-new-privileges:true")), false)
	filter := "replaced by the allowed options below"
	if slices.Contains(h.SecurityOpt, "seccomp="+profile) {
		filter = "Callyard's profile: Moby's, without other architectures, ptrace, and sockets other than unix, inet and netlink"
	}
	add("seccomp", filter, false)
	add("lsm", "the engine's default (AppArmor or SELinux if the kernel has one), unless allowed otherwise below", false)
	add("memory", bytesText(h.Memory)+", swap included", c.Memory != 0)
	add("cpus", amountText(float64(h.NanoCPUs)/1e9), c.CPUs != 0)
	add("pids", amountText(float64(*h.PidsLimit)), c.PIDs != 0)
	for _, u := range h.Ulimits {
		add("ulimit "+u.Name, strconv.FormatInt(u.Hard, 10), u.Name == "nofile" && c.Files != 0 || u.Name == "fsize" && c.File != 0)
	}
	add("ipc", string(h.IpcMode), c.IPCMode != "")
	namespaces := []string{"mount"}
	for name, mode := range map[string]string{"pid": string(h.PidMode), "uts": string(h.UTSMode), "cgroup": strings.TrimPrefix(string(h.CgroupnsMode), "private")} {
		if mode == "" {
			namespaces = append(namespaces, name)
		}
	}
	slices.Sort(namespaces)
	add("namespaces", strings.Join(namespaces, ", ")+" of its own", false)
	var devices []string
	for _, d := range h.Devices {
		devices = append(devices, d.PathOnHost)
	}
	add("devices", listText(devices), len(devices) > 0)
	add("log_driver", "none", c.LogDriver != "")
	runtime := h.Runtime
	if runtime == "" {
		runtime = "the engine's default"
	}
	add("runtime", runtime, c.Runtime != "")
	add("time", s.Time.Round(time.Millisecond).String()+" from assignment, then it is killed", c.Time != 0)
	add("pull", "never", c.Pull != "")
	add("pool", strconv.Itoa(s.Pool)+" pre-started, each used once", c.Pool != 0)
	for _, name := range r.widened {
		out = append(out, Setting{name, "less isolated than recommended", allowed})
	}
	return out
}

func listText(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func bytesText(n int64) string {
	switch {
	case n <= 0:
		return "unlimited"
	case n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

func amountText(n float64) string {
	if n <= 0 {
		return "unlimited"
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}
