package sandbox

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/mount"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/hostpath"
)

// volumes checks the volumes and returns the mounts. Each is read-only, within one file system, and
// private, unless the operator allowed more by name.
func (r *resolver) volumes(list []string) []mount.Mount {
	var out []mount.Mount
	for _, v := range list {
		parts := strings.Split(v, ":")
		if len(parts) < 2 || len(parts) > 3 || !path.IsAbs(parts[1]) {
			r.faults.add("volumes", "%q is invalid; write HOST:CONTAINER:ro with absolute paths.", v)
			continue
		}
		host, target, mode := parts[0], path.Clean(parts[1]), ""
		if len(parts) == 3 {
			mode = parts[2]
		}
		if target == "/" || target == "/proc" || strings.HasPrefix(target, "/proc/") || target == "/sys" || strings.HasPrefix(target, "/sys/") || target == "/dev" || strings.HasPrefix(target, "/dev/") {
			r.faults.add("volumes", "%q covers %s of the container; use another path in it.", v, target)
			continue
		}
		readOnly := false
		switch mode {
		case "ro":
			readOnly = true
		case "", "rw":
			r.widens("volumes", "writable-volume:"+host, "%q is writable, so one call could leave data for the next; write %s:%s:ro.", v, host, target)
		default:
			r.faults.add("volumes", "%q has the option %q; only \"ro\" is supported.", v, mode)
			continue
		}
		if m, ok := r.mount(host, target); ok {
			m.ReadOnly = readOnly
			out = append(out, m)
		}
	}
	return out
}

func (r *resolver) mount(host, target string) (mount.Mount, bool) {
	if !filepath.IsAbs(host) {
		if strings.ContainsAny(host, "/.~") || host == "" {
			r.faults.add("volumes", "the host path %q is not absolute; write an absolute path.", host)
			return mount.Mount{}, false
		}
		r.widens("volumes", "named-volume:"+host, "the volume %q outlives the container and is shared by all containers that use it; use a read-only host path.", host)
		return mount.Mount{Type: mount.TypeVolume, Source: host, Target: target}, true
	}
	// A remote engine has another file system. Checking the local one does not help then, but does
	// no harm.
	place, look := hostpath.Keep(host, slices.Contains(r.config.Allow, "volume:"+host))
	switch {
	case look.Socket:
		r.widens("volumes", "volume:"+host, "%s is a socket or a device; access to the socket of a container engine means root on the host. Remove it.", host)
	case look.Sensitive:
		r.widens("volumes", "volume:"+host, "%s is, contains or is inside a protected path of the host; mount a folder created for this server, such as one in /srv.", host)
	}
	r.places[target] = place
	return mount.Mount{
		Type: mount.TypeBind, Source: look.Real, Target: target,
		// File systems mounted below the path would stay writable in a read-only mount.
		BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: true},
	}, true
}

// mountsNow returns the mounts of a container about to be created, with host paths resolved,
// because the engine follows the links that exist when it mounts. It returns an error if a path
// leads to another place than the one checked.
func (s *Spec) mountsNow() ([]mount.Mount, error) {
	mounts := slices.Clone(s.host.Mounts)
	for i := range mounts {
		place, ok := s.places[mounts[i].Target]
		if !ok {
			continue // a volume of the engine
		}
		real, err := place.Now()
		if err != nil {
			return nil, launch.Failed("No container of server %q was created, because of its volume: %w.", s.Server, err)
		}
		mounts[i].Source = real
	}
	return mounts, nil
}

// stillThere returns an error if a mounted path is not the one checked: it may have been replaced
// between the check and the mount.
func (s *Spec) stillThere(mounts []mount.Mount) error {
	now, err := s.mountsNow()
	if err != nil {
		return err
	}
	for i := range now {
		if now[i].Source != mounts[i].Source {
			return launch.Failed("The container of the server %q was removed before its use: its volume %s resolved to %s when it was created, and now resolves to %s.", s.Server, mounts[i].Target, mounts[i].Source, now[i].Source)
		}
	}
	return nil
}
