package config

import (
	"bytes"
	"encoding"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// hiddenText replaces a secret.
const hiddenText = "[secret]"

// Dump writes v as YAML with its secrets hidden: the effective configuration. A type decides what
// it shows if it has a log value (slog.LogValuer) or a text form. The user and password of a URL
// are hidden in every text. Load reads the rest of the output back to the same values.
func Dump(w io.Writer, v any) error {
	out, err := yaml.Marshal(yamlValue(reflect.ValueOf(v), 0))
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	_, err = w.Write(out)
	return err
}

// DumpJSON returns the output of [Dump] as a JSON object.
func DumpJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	if err := Dump(&text, v); err != nil {
		return nil, err
	}
	out, err := yaml.YAMLToJSON(text.Bytes())
	if err != nil {
		return nil, fmt.Errorf("writing the configuration as JSON: %w", err)
	}
	return bytes.TrimSpace(out), nil
}

// yamlValue converts a value to a form that the YAML writer accepts.
func yamlValue(v reflect.Value, depth int) any {
	if !v.IsValid() || depth > maxDepth {
		return nil
	}
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
	}
	if v.CanInterface() {
		switch value := v.Interface().(type) {
		case slog.LogValuer:
			return shownLog(value.LogValue().Resolve(), depth+1)
		case time.Duration:
			return formatDuration(value)
		case encoding.TextMarshaler:
			text, err := value.MarshalText()
			if err != nil {
				return hiddenText
			}
			return hideCredentials(string(text))
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return yamlValue(v.Elem(), depth+1)
	case reflect.Struct:
		m := yaml.MapSlice{}
		for _, s := range sectionsIn(v) {
			m = append(m, yaml.MapItem{Key: s.key, Value: yamlValue(s.value, depth+1)})
		}
		return m
	case reflect.Map:
		m := yaml.MapSlice{}
		for _, key := range sortedKeys(v) {
			m = append(m, yaml.MapItem{Key: key.String(), Value: yamlValue(v.MapIndex(key), depth+1)})
		}
		return m
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = yamlValue(v.Index(i), depth+1)
		}
		return list
	case reflect.String:
		return hideCredentials(v.String())
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return nil
	}
	return v.Interface()
}

func shownLog(v slog.Value, depth int) any {
	switch v.Kind() {
	case slog.KindGroup:
		m := yaml.MapSlice{}
		for _, attr := range v.Group() {
			m = append(m, yaml.MapItem{Key: attr.Key, Value: shownLog(attr.Value.Resolve(), depth+1)})
		}
		return m
	case slog.KindDuration:
		return formatDuration(v.Duration())
	}
	return yamlValue(reflect.ValueOf(v.Any()), depth)
}

var credentials = regexp.MustCompile(`://[^\s/,]*@`)

// hideCredentials hides the user and password of URLs in s.
func hideCredentials(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	return credentials.ReplaceAllLiteralString(s, "://"+hiddenText+"@")
}
