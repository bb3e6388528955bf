package fabric

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Compose is the part of a compose file that the files of deploy use.
type Compose struct {
	Services map[string]Service `yaml:"services"`
	Networks map[string]Network `yaml:"networks"`
	Volumes  map[string]any     `yaml:"volumes"`
}

// Service is one service of a compose file.
type Service struct {
	Image       string            `yaml:"image"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	// Volumes are "SOURCE:TARGET" or "SOURCE:TARGET:ro". A source that begins with a dot
	// or a slash is a folder or a file; any other source is a volume of the compose file.
	Volumes []string `yaml:"volumes"`
	// Networks are networks of the file. Ports are published on the last one, which must not be
	// internal if there are ports.
	Networks    Attached `yaml:"networks"`
	Ports       []string `yaml:"ports"`
	ReadOnly    bool     `yaml:"read_only"`
	Tmpfs       []string `yaml:"tmpfs"`
	CapDrop     []string `yaml:"cap_drop"`
	Security    []string `yaml:"security_opt"`
	User        string   `yaml:"user"`
	Groups      []string `yaml:"group_add"`
	ExtraHosts  []string `yaml:"extra_hosts"`
	Restart     string   `yaml:"restart"`
	Privileged  bool     `yaml:"privileged"`
	NetworkMode string   `yaml:"network_mode"`
	// Profiles must be selected explicitly: Up does not start a service with profiles.
	Profiles []string `yaml:"profiles"`
	// Health is the health check of the engine. It may be nil.
	Health *HealthCheck `yaml:"healthcheck"`
}

// HealthCheck is a command in a container that exits with 0 while its service is healthy.
type HealthCheck struct {
	Test        []string      `yaml:"test"`
	Interval    time.Duration `yaml:"interval"`
	Timeout     time.Duration `yaml:"timeout"`
	StartPeriod time.Duration `yaml:"start_period"`
	Retries     int           `yaml:"retries"`
}

// ReadCompose reads a compose file. A key next to a merge overrides the merged one.
func ReadCompose(path string) (Compose, error) {
	var c Compose
	text, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("reading a compose file: %w", err)
	}
	if err := yaml.UnmarshalWithOptions(text, &c, yaml.AllowDuplicateMapKey()); err != nil {
		return c, fmt.Errorf("reading %s: %w", path, err)
	}
	return c, nil
}

// part returns the name of the service's image in build.sh.
func (s Service) part() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(s.Image, "callyard/"), ":")
	return name
}

// clone returns an independent copy of the service.
func (s Service) clone() Service {
	env := make(map[string]string, len(s.Environment))
	for k, v := range s.Environment {
		env[k] = v
	}
	s.Environment = env
	s.Volumes = append([]string(nil), s.Volumes...)
	s.Ports = append([]string(nil), s.Ports...)
	s.Groups = append([]string(nil), s.Groups...)
	s.ExtraHosts = append([]string(nil), s.ExtraHosts...)
	return s
}

var reference = regexp.MustCompile(`\$\{([A-Z_]+)(?::\?[^}]*)?\}`)

// expand replaces variables, as compose does with its .env file.
func expand(text string, env map[string]string) (string, error) {
	var missing error
	text = reference.ReplaceAllStringFunc(text, func(m string) string {
		name := reference.FindStringSubmatch(m)[1]
		value, ok := env[name]
		if !ok {
			missing = fmt.Errorf("secrets.sh does not make %s", name)
		}
		return value
	})
	return text, missing
}

// readEnv reads a .env file.
func readEnv(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading what secrets.sh made: %w", err)
	}
	env := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env[name] = value
		}
	}
	return env, nil
}
