package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

const (
	fileSuffix = "_FILE"
	// maxValueFile limits the size of the file that a …_FILE variable names, in bytes.
	maxValueFile = 1 << 20
)

// ownVariables mark processes that a worker starts. They are not keys.
var ownVariables = [...]string{"CALLYARD_REAPER", "CALLYARD_COOKIE"}

// applyEnv applies CALLYARD_… variables in the order of their names.
func (d *decoder) applyEnv(src Source, settings []setting) {
	byVariable := make(map[string]*setting, len(settings))
	for i := range settings {
		byVariable[settings[i].variable] = &settings[i]
	}
	ignore := append(slices.Clone(src.Ignore), ownVariables[:]...)
	for _, key := range src.Others {
		ignore = append(ignore, prefix+upperSnake(key), prefix+upperSnake(key)+"_*")
	}
	vars := d.expand.vars
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		value := vars[name]
		at := place{layer: layerEnv, source: name}
		if s, ok := byVariable[name]; ok {
			d.applyText(at, s, value, false)
			continue
		}
		if base, isFile := strings.CutSuffix(name, fileSuffix); isFile && byVariable[base] != nil {
			s := byVariable[base]
			if _, both := vars[base]; both {
				d.faults.add(at, s.path, "%s is set as well; set only one of them.", base)
				continue
			}
			data, err := readText(value, maxValueFile)
			if err != nil {
				// Do not show a secret that was put here by mistake.
				file := "the file in it"
				if strings.HasPrefix(value, "/") || strings.HasPrefix(value, ".") {
					file = quote(value)
				}
				d.faults.add(at, s.path, "%s cannot be used: %v", file, err)
				continue
			}
			d.applyText(at, s, strings.TrimRight(string(data), "\r\n"), true)
			continue
		}
		if ignored(name, ignore) || isServiceLink(name, value) {
			continue
		}
		names := slices.Collect(maps.Keys(byVariable))
		fix := "unset it; `callyard config check` lists the keys."
		if near := yamldoc.Nearest(strings.TrimSuffix(name, fileSuffix), names); near != "" {
			fix = "did you mean " + near + "?"
		}
		d.faults.add(at, "", "no key uses this variable; %s", fix)
	}
}

func ignored(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if start, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(name, start)
		}
		return name == p
	})
}

// isServiceLink recognizes the variables that Kubernetes adds to every container for each Service
// of the namespace. For a Service callyard-x it adds CALLYARD_X_SERVICE_HOST,
// CALLYARD_X_PORT=tcp://… and others. They are not settings, and a chart whose Services have such
// names must start.
func isServiceLink(name, value string) bool {
	for _, scheme := range []string{"tcp://", "udp://", "sctp://"} {
		if strings.HasPrefix(value, scheme) && strings.Contains(name, "_PORT") {
			return true
		}
	}
	if strings.HasSuffix(name, "_SERVICE_HOST") || strings.HasSuffix(name, "_SERVICE_PORT") || strings.Contains(name, "_SERVICE_PORT_") {
		return true
	}
	for _, protocol := range []string{"_TCP", "_UDP", "_SCTP"} {
		before, after, ok := strings.Cut(name, protocol)
		digits := strings.TrimRight(before, "0123456789")
		if ok && len(digits) < len(before) && strings.HasSuffix(digits, "_PORT_") &&
			(after == "_PROTO" || after == "_PORT" || after == "_ADDR") {
			return true
		}
	}
	return false
}
