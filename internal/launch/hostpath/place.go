package hostpath

import (
	"fmt"
	"path"
)

// Place is a host path that may be shown, as it was when that was checked. A name
// means what it leads to at the moment, so whoever shows it asks again each time.
type Place struct {
	name    string // as it was written, cleaned
	link    bool   // it led elsewhere when it was checked
	allowed bool   // somebody accepted what it is
}

// Keep returns the place of an absolute path and what was found there. allowed says
// that the operator accepted whatever it is.
func Keep(host string, allowed bool) (Place, Look) {
	look := At(host)
	name := path.Clean(host)
	return Place{name: name, link: look.Real != name, allowed: allowed}, look
}

// Now returns where the place leads at the moment, without a link in it. It is an
// error when that is not what was checked: a link where there was none, or a way to
// what belongs to the host alone.
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
