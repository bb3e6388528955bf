package sandbox

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
)

// widens handles a setting that makes the sandbox wider. It is refused unless the operator allows
// it by the name. If it is allowed, widens records it for Describe and returns true.
func (r *resolver) widens(key, name, format string, args ...any) bool {
	if slices.Contains(r.config.Allow, name) {
		if !slices.Contains(r.widened, name) {
			r.widened = append(r.widened, name)
		}
		return true
	}
	r.faults.add(key, format+" To accept it for this server, add %q to \"allow\".", append(args, name)...)
	return false
}

// namespaces applies or refuses settings that share the host's namespaces.
func (r *resolver) namespaces(h *container.HostConfig) {
	c := r.config
	switch c.Network {
	case "", "none":
	default:
		if r.widens("network", "network:"+c.Network, "%q gives the container a network, and access to the host, its neighbors and cloud metadata services; write \"none\".", c.Network) {
			h.NetworkMode = container.NetworkMode(c.Network)
		}
	}
	if c.PIDMode != "" && c.PIDMode != "private" && r.widens("pid", "pid:"+c.PIDMode, "%q exposes other processes to the container; remove it.", c.PIDMode) {
		h.PidMode = container.PidMode(c.PIDMode)
	}
	if c.IPCMode != "" && c.IPCMode != "none" && r.widens("ipc", "ipc:"+c.IPCMode, "%q gives the container shared memory; write \"none\".", c.IPCMode) {
		h.IpcMode = container.IpcMode(c.IPCMode)
	}
	if c.UTSMode != "" && c.UTSMode != "private" && r.widens("uts", "uts:"+c.UTSMode, "%q shares the host's UTS namespace; remove it.", c.UTSMode) {
		h.UTSMode = container.UTSMode(c.UTSMode)
	}
	if c.UsernsMode != "" && c.UsernsMode != "private" && r.widens("userns", "userns:"+c.UsernsMode, "%q maps users of the container to users of the host; remove it.", c.UsernsMode) {
		h.UsernsMode = container.UsernsMode(c.UsernsMode)
	}
	if c.CgroupnsMode != "" && c.CgroupnsMode != "private" && r.widens("cgroup", "cgroup:"+c.CgroupnsMode, "%q exposes the cgroups of others to the container; remove it.", c.CgroupnsMode) {
		h.CgroupnsMode = container.CgroupnsMode(c.CgroupnsMode)
	}
}

// rights applies or refuses settings that give the container more rights.
func (r *resolver) rights(h *container.HostConfig) {
	c := r.config
	if c.Privileged && r.widens("privileged", "privileged", "a privileged container is root on the host; remove it.") {
		h.Privileged = true
		h.SecurityOpt = nil
	}
	for _, name := range c.CapAdd {
		name = "CAP_" + strings.TrimPrefix(strings.ToUpper(name), "CAP_")
		if r.widens("cap_add", "cap:"+name, "%s is a root capability; the server gets none. Remove it.", name) {
			h.CapAdd = append(h.CapAdd, name)
		}
	}
	for _, opt := range c.SecurityOpt {
		opt = strings.Replace(opt, ":", "=", 1)
		if opt == "no-new-privileges" || opt == "no-new-privileges=true" {
			continue
		}
		if r.widens("security_opt", "security-opt:"+opt, "%q removes or replaces a protection of the sandbox; remove it.", opt) {
			kind, _, _ := strings.Cut(opt, "=")
			h.SecurityOpt = slices.DeleteFunc(h.SecurityOpt, func(s string) bool { return strings.HasPrefix(s, kind) })
			h.SecurityOpt = append(h.SecurityOpt, opt)
		}
	}
	for _, device := range c.Devices {
		if r.widens("devices", "device:"+device, "%q opens a device of the host; remove it.", device) {
			host, rest, _ := strings.Cut(device, ":")
			inside, rights, _ := strings.Cut(rest, ":")
			if inside == "" {
				inside = host
			}
			if rights == "" {
				rights = "rw"
			}
			h.Devices = append(h.Devices, container.DeviceMapping{PathOnHost: host, PathInContainer: inside, CgroupPermissions: rights})
		}
	}
	if c.GPUs != "" {
		r.faults.add("gpus", "a sandbox has no devices; run a server that requires one at a lower risk level, or elsewhere.")
	}
	for _, group := range c.GroupAdd {
		if r.widens("group_add", "group:"+group, "the group %q may own files or devices of the host; remove it.", group) {
			h.GroupAdd = append(h.GroupAdd, group)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sysctls)) {
		if r.widens("sysctls", "sysctl:"+name, "%s changes the kernel under the container; remove it.", name) {
			if h.Sysctls == nil {
				h.Sysctls = map[string]string{}
			}
			h.Sysctls[name] = c.Sysctls[name]
		}
	}
	if c.CgroupParent != "" && r.widens("cgroup_parent", "cgroup-parent:"+c.CgroupParent, "%q places the container under limits other than the engine's; remove it.", c.CgroupParent) {
		h.CgroupParent = c.CgroupParent
	}
	if c.ReadOnly != nil && !*c.ReadOnly && r.widens("read_only", "writable-system", "false lets the server change its own system and fill the host's disk; remove it, and write to /tmp.") {
		h.ReadonlyRootfs = false
	}
	switch name, _, _ := strings.Cut(c.Runtime, "-"); name {
	case "", "runc", "crun", "youki", "runsc", "kata", "io.containerd.runc.v2", "io.containerd.runsc.v1", "io.containerd.kata.v2":
	default:
		r.widens("runtime", "runtime:"+c.Runtime, "%q is not a supported runtime; write \"runc\" or \"runsc\".", c.Runtime)
	}
}

// user applies or refuses the user. Names are refused because the image defines them: its user
// nobody may be root.
func (r *resolver) user() string {
	c := r.config
	if c.User == "" {
		return ""
	}
	uid, gid, pair := strings.Cut(c.User, ":")
	for _, id := range []string{uid, gid} {
		if id == "" && !pair {
			continue
		}
		n, err := strconv.ParseUint(id, 10, 31)
		if err != nil {
			if id == "root" {
				r.widens("user", "user:"+c.User, "%q is root; set a number such as \"10001:10001\", or omit it.", c.User)
			} else {
				r.faults.add("user", "%q is not a number, and the image defines the meaning of a name; write UID:GID such as \"10001:10001\".", c.User)
			}
			return c.User
		}
		if n == 0 {
			r.widens("user", "user:"+c.User, "%q is root; set a number such as \"10001:10001\", or omit it.", c.User)
			return c.User
		}
	}
	if !pair {
		return uid + ":" + uid // without a group it would be root's group
	}
	return c.User
}

// meaningless refuses settings that make no sense for a container that is used once. None of them
// can be allowed.
func (r *resolver) meaningless() {
	c := r.config
	if len(c.VolumesFrom) > 0 {
		r.faults.add("volumes_from", "a container that is used once shares nothing with another; remove it.")
	}
	if len(c.Ports) > 0 {
		r.faults.add("ports", "a sandbox uses only its standard input and output; remove it.")
	}
	if len(c.ExtraHosts) > 0 {
		r.faults.add("extra_hosts", "a sandbox without a network cannot resolve names; remove it.")
	}
	if c.Restart != "" && c.Restart != "no" {
		r.faults.add("restart", "%q would restart a used container; remove it.", c.Restart)
	}
	if c.LogDriver != "" && c.LogDriver != "none" {
		r.faults.add("log_driver", "%q would copy arguments and results to the engine's logs; remove it.", c.LogDriver)
	}
	if c.Pull != "" && c.Pull != "never" {
		r.faults.add("pull", "%q: images are never pulled automatically. Load the image before the start, and remove this.", c.Pull)
	}
	if c.TTY {
		r.faults.add("tty", "a terminal would corrupt the protocol; remove it.")
	}
	if c.OOMDisable {
		r.faults.add("oom_kill_disable", "a container over its memory would hang instead of ending; remove it.")
	}
	if c.ShmSize != 0 {
		r.faults.add("shm_size", "a sandbox has no shared memory; remove it.")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Ulimits)) {
		switch name {
		case "nproc":
			r.faults.add("ulimits", "nproc counts the processes of a user in all containers, so containers would block each other; remove it and set \"pids\".")
		case "nofile":
			r.faults.add("ulimits", "write nofile as \"files\".")
		case "fsize":
			r.faults.add("ulimits", "write fsize as \"file_size\".")
		default:
			r.faults.add("ulimits", "%s cannot be set here; remove it.", name)
		}
	}
}
