package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// outputOf runs a command to its end and returns its output.
func outputOf(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(cleanEnviron(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %.300s: %v\n%s\nscripts/test.sh --setup brings what it needs", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// filesBelow returns the files below a folder whose names have the suffix.
func filesBelow(t *testing.T, root, ending string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ending) {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s below %s: %v", ending, root, err)
	}
	return found
}

// Third-party generated clients must not mistake a held call for one that has
// run: many generators support only one type for all responses of an operation.
func TestGeneratedClientsDistinguishHeldAndCompletedCalls(t *testing.T) {
	t.Parallel()
	up := startDemo(t)
	watchClients(t)
	var (
		cache   = filepath.Join(programs.root, ".cache")
		jar     = filepath.Join(cache, "openapi-generator-cli.jar")
		stories = filepath.Join(programs.root, "e2e", "clients-generated")
		url     = []string{"CALLYARD_URL=" + up.url, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"}
	)
	for _, story := range []string{"Story.java", "story.py", "story.cjs"} {
		if _, err := os.Stat(filepath.Join(stories, story)); err != nil { // tells the go command that the result depends on it
			t.Fatal(err)
		}
	}
	generate := func(t *testing.T, generator string, more ...string) string {
		into := t.TempDir()
		outputOf(t, nil, "java", append([]string{"-jar", jar, "generate", "-i", filepath.Join(programs.root, "clients", "openapi.json"), "-g", generator, "-o", into,
			"--global-property", "apis=Calls,models,supportingFiles"}, more...)...)
		return into
	}
	for name, tell := range map[string]func(t *testing.T) string{
		"java": func(t *testing.T) string {
			made, classes := generate(t, "java", "--library", "native", "--additional-properties", "openApiNullable=false"), t.TempDir()
			sources := append(filesBelow(t, filepath.Join(made, "src", "main"), ".java"), filepath.Join(stories, "Story.java"), filepath.Join(stories, "javax/annotation/Generated.java"))
			outputOf(t, nil, "javac", append([]string{"-nowarn", "-proc:none", "-encoding", "UTF-8", "-cp", jar, "-d", classes}, sources...)...)
			return outputOf(t, url, "java", "-cp", classes+string(filepath.ListSeparator)+jar, "Story")
		},
		"python": func(t *testing.T) string {
			made := generate(t, "python")
			return outputOf(t, append(url, "PYTHONPATH="+made, "PYTHONDONTWRITEBYTECODE=1"), filepath.Join(cache, "python/bin/python"), filepath.Join(stories, "story.py"))
		},
		"typescript-fetch": func(t *testing.T) string {
			made, compiled := generate(t, "typescript-fetch"), t.TempDir()
			tsc := filepath.Join(programs.root, "clients/typescript/node_modules/typescript/bin/tsc")
			// The generator's own types do not compile without errors.
			outputOf(t, nil, "node", append([]string{tsc, "--noCheck", "--module", "commonjs", "--target", "es2022", "--rootDir", made, "--outDir", compiled}, filesBelow(t, made, ".ts")...)...)
			return outputOf(t, url, "node", filepath.Join(stories, "story.cjs"), filepath.Join(compiled, "index.js"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if said := tell(t); said != "completed Echo: hello\nheld add\n" {
				t.Errorf("it says:\n%s", said)
			}
		})
	}
}
