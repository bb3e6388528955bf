package hostpath

import (
	"fmt"
	"path"
)

// Place is a checked host path. A path can lead to another target later, so call Now at each use.
type Place struct {
	name    string // as it was written, cleaned
	link    bool   // it led to another path when it was checked
	allowed bool   // the operator accepted its target
}

// Keep checks an absolute path and returns it as a Place. allowed means that the operator accepted
// whatever it is.
func Keep(host string, allowed bool) (Place, Look) {
	look := At(host)
	name := path.Clean(host)
	return Place{name: name, link: look.Real != name, allowed: allowed}, look
}

// Now returns the current target of the place, without links. It returns an error if the target is
// not the one that was checked: there is a new link, or the path leads to a sensitive path.
func (p Place) Now() (real string, err error) {
	look := At(p.name)
	switch {
	case look.Real != p.name && !p.link:
		return "", fmt.Errorf("%s was replaced with a link to %s after the worker started; restore the folder, or restart the worker", p.name, look.Real)
	case p.allowed:
	case look.Socket:
		return "", fmt.Errorf("%s now resolves to %s, which is a socket or a device; change it", p.name, look.Real)
	case look.Sensitive:
		return "", fmt.Errorf("%s now resolves to %s, which is, contains or is inside a protected path of the host; change it", p.name, look.Real)
	}
	return look.Real, nil
}
