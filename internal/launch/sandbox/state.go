package sandbox

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/mount"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/hostpath"
)

// StateTarget is the path of the directory of [State] in the container.
const StateTarget = "/episode"

// State is a directory for one container, in addition to its Spec.
type State struct {
	// Dir is an absolute path of the host that was created for this container only, accessible to all
	// users; see [Spec.InState].
	Dir string
	// Env are variables in addition to those of the Spec. Placeholder is replaced by [StateTarget] in
	// the arguments and variables of the Spec; "" replaces nothing.
	Env         map[string]string
	Placeholder string
	// Time limits the use of the container instead of the time of the Spec.
	Time time.Duration
}

// InState returns a copy of the Spec whose container has a writable directory at [StateTarget]. It
// is also the working directory unless the operator set one. Nothing else of the Spec becomes
// wider. A container runs as a user that owns nothing on the host. If this process is not root, the
// container runs as this process's user instead, because this process could not remove its files
// otherwise. The error is a *schema.Error: the directory is not an absolute path, or the Spec has a
// volume at the same place.
func (s Spec) InState(st State) (Spec, error) {
	if !filepath.IsAbs(st.Dir) {
		return Spec{}, launch.Failed("The state directory %q for a container of server %q is not absolute.", st.Dir, s.Server)
	}
	for _, m := range s.host.Mounts {
		if m.Target == StateTarget || strings.HasPrefix(m.Target, StateTarget+"/") {
			return Spec{}, launch.Failed("The server %q has a volume at %s, where its container finds its state directory; use another path in docker.volumes.", s.Server, m.Target)
		}
	}
	place, look := hostpath.Keep(st.Dir, true) // it was created here for this purpose
	s.places = maps.Clone(s.places)
	if s.places == nil {
		s.places = make(map[string]hostpath.Place)
	}
	s.places[StateTarget] = place
	s.host.Mounts = append(slices.Clone(s.host.Mounts), mount.Mount{
		Type: mount.TypeBind, Source: look.Real, Target: StateTarget,
		BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: true},
	})
	put := func(list []string) []string {
		out := slices.Clone(list)
		for i := range out {
			if st.Placeholder != "" {
				out[i] = strings.ReplaceAll(out[i], st.Placeholder, StateTarget)
			}
		}
		return out
	}
	s.config.Cmd, s.config.Env = put(s.config.Cmd), put(s.config.Env)
	for _, name := range slices.Sorted(maps.Keys(st.Env)) {
		s.config.Env = append(slices.DeleteFunc(s.config.Env, func(v string) bool { return strings.HasPrefix(v, name+"=") }), name+"="+st.Env[name])
	}
	if s.config.WorkingDir == "" {
		s.config.WorkingDir = StateTarget
	}
	if uid := os.Geteuid(); uid != 0 {
		s.user = strconv.Itoa(uid) + ":" + strconv.Itoa(os.Getegid())
	}
	if st.Time > 0 {
		s.Time = st.Time
	}
	return s, nil
}

// KeepsState returns the reason why containers of this engine cannot have a directory of this
// machine, or nil if they can; see [Spec.InState]. The error is a *schema.Error.
func (e *Engine) KeepsState() error {
	switch {
	case !strings.HasPrefix(e.about.Host, "unix://"):
		return launch.Failed("The container engine at %s is on another machine, so its containers cannot have a state directory of this one; use an engine with a unix socket.", e.about.Host)
	case os.Geteuid() != 0 && (e.about.Rootless || e.about.UserNS):
		return launch.Failed("The container engine at %s maps the users of containers to others, so this process could not remove the files of a container; run it as root, or use an engine without user namespaces.", e.about.Host)
	}
	return nil
}
