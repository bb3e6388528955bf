package setup

import (
	"reflect"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/config"
)

func TestEachLimitOfASandboxIsPartOfTheVersionOfItsServer(t *testing.T) {
	version := func(e config.ServerEntry) string { return entryVersions([]config.ServerEntry{e})[e.ID] }
	for _, of := range []reflect.Type{reflect.TypeFor[config.Docker](), reflect.TypeFor[config.Bubblewrap]()} {
		entry := func(section reflect.Value) config.ServerEntry {
			e := config.ServerEntry{ID: "s"}
			if d, ok := section.Interface().(*config.Docker); ok {
				e.Docker = d
			} else {
				e.Bubblewrap = section.Interface().(*config.Bubblewrap)
			}
			return e
		}
		plain := version(entry(reflect.New(of)))
		for field := range of.Fields() {
			section := reflect.New(of)
			value := section.Elem().FieldByIndex(field.Index)
			switch value.Kind() {
			case reflect.String:
				value.SetString("x")
			case reflect.Bool:
				value.SetBool(true)
			case reflect.Int, reflect.Int64:
				value.SetInt(1)
			case reflect.Float64:
				value.SetFloat(1)
			case reflect.Pointer:
				value.Set(reflect.New(value.Type().Elem()))
			case reflect.Slice:
				value.Set(reflect.ValueOf([]string{"x"}))
			case reflect.Map:
				value.Set(reflect.MakeMap(value.Type()))
				value.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(value.Type().Elem()))
			default:
				t.Fatalf("%s has another kind", field.Name)
			}
			if version(entry(section)) == plain {
				t.Errorf("%s: %s is not part of it", of, field.Name)
			}
		}
	}
}

func TestSecretsAreNotPartOfTheVersionOfAServer(t *testing.T) {
	entry := func(secret, name string) config.ServerEntry {
		env := map[string]string{name: secret}
		return config.ServerEntry{
			ID: "s", Env: env, Headers: env, Docker: &config.Docker{Env: env, Time: time.Minute}, Bubblewrap: &config.Bubblewrap{Env: env},
			OpenAPI: &config.OpenAPI{Credentials: map[string]config.Credential{name: {Value: secret, Username: secret, Password: secret}}},
			Auth:    &config.Auth{Value: config.Secret{Text: secret}, ClientSecret: config.Secret{Text: secret}},
			Builtin: &config.Builtin{APIKey: secret},
		}
	}
	versions := func(e config.ServerEntry) string { return entryVersions([]config.ServerEntry{e})["s"] }
	if versions(entry("one", "A")) != versions(entry("two", "A")) {
		t.Error("a secret is part of it")
	}
	if versions(entry("one", "A")) == versions(entry("one", "B")) {
		t.Error("the name of a variable is not part of it")
	}
}
