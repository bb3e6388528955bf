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
		return "", fmt.Errorf("%s was replaced by a link to %s since the worker started; put the folder back, or start the worker again", p.name, look.Real)
	case p.allowed:
	case look.Socket:
		return "", fmt.Errorf("%s leads to %s now, which is a socket or a device; point it elsewhere", p.name, look.Real)
	case look.Sensitive:
		return "", fmt.Errorf("%s leads to %s now, which holds, contains or lies in what belongs to the host alone; point it elsewhere", p.name, look.Real)
	}
	return look.Real, nil
}
