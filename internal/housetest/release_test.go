package housetest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// releaseConfig has the keys of GoReleaser that .goreleaser.yaml uses. Any other key fails the test,
// so that misspelled keys are noticed; add new keys here.
type releaseConfig struct {
	Version int    `yaml:"version"`
	Project string `yaml:"project_name"`
	Before  struct {
		Hooks []string `yaml:"hooks"`
	} `yaml:"before"`
	Builds []struct {
		ID           string   `yaml:"id"`
		Main         string   `yaml:"main"`
		Binary       string   `yaml:"binary"`
		GOOS         []string `yaml:"goos"`
		GOARCH       []string `yaml:"goarch"`
		Env          []string `yaml:"env"`
		Flags        []string `yaml:"flags"`
		Ldflags      []string `yaml:"ldflags"`
		ModTimestamp string   `yaml:"mod_timestamp"`
	} `yaml:"builds"`
	Archives []struct {
		ID           string            `yaml:"id"`
		IDs          []string          `yaml:"ids"`
		NameTemplate string            `yaml:"name_template"`
		Formats      []string          `yaml:"formats"`
		BuildsInfo   map[string]string `yaml:"builds_info"`
		Files        []any             `yaml:"files"` // a name, or a rule for generated files
	} `yaml:"archives"`
	Images []struct {
		ID         string            `yaml:"id"`
		IDs        []string          `yaml:"ids"`
		Dockerfile string            `yaml:"dockerfile"`
		Images     []string          `yaml:"images"`
		Tags       []string          `yaml:"tags"`
		Platforms  []string          `yaml:"platforms"`
		BuildArgs  map[string]string `yaml:"build_args"`
		Labels     map[string]string `yaml:"labels"`
		SBOM       bool              `yaml:"sbom"`
	} `yaml:"dockers_v2"`
	Digest struct {
		NameTemplate string `yaml:"name_template"`
	} `yaml:"docker_digest"`
	Checksum struct {
		NameTemplate string              `yaml:"name_template"`
		Algorithm    string              `yaml:"algorithm"`
		ExtraFiles   []map[string]string `yaml:"extra_files"`
	} `yaml:"checksum"`
	SBOMs []struct {
		ID        string   `yaml:"id"`
		Artifacts string   `yaml:"artifacts"`
		IDs       []string `yaml:"ids"`
		Cmd       string   `yaml:"cmd"`
		Args      []string `yaml:"args"`
		Documents []string `yaml:"documents"`
	} `yaml:"sboms"`
	Signs      []releaseSign `yaml:"signs"`
	ImageSigns []releaseSign `yaml:"docker_signs"`
	Snapshot   struct {
		VersionTemplate string `yaml:"version_template"`
	} `yaml:"snapshot"`
	Changelog struct {
		Disable bool `yaml:"disable"`
	} `yaml:"changelog"`
	Release struct {
		GitHub     map[string]string   `yaml:"github"`
		Draft      bool                `yaml:"draft"`
		Prerelease string              `yaml:"prerelease"`
		ExtraFiles []map[string]string `yaml:"extra_files"`
	} `yaml:"release"`
}

type releaseSign struct {
	ID        string   `yaml:"id"`
	Artifacts string   `yaml:"artifacts"`
	Cmd       string   `yaml:"cmd"`
	Signature string   `yaml:"signature"`
	Args      []string `yaml:"args"`
}

// exists fails the test if the file that by refers to does not exist in the repository.
func exists(t *testing.T, named, by string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(moduleRoot, named)); err != nil {
		t.Errorf("%s names %s, which does not exist", by, named)
	}
}

func TestTheReleaseHasEveryProgramOnEveryPlatform(t *testing.T) {
	const config = ".goreleaser.yaml"
	raw, err := os.ReadFile(filepath.Join(moduleRoot, config))
	if err != nil {
		t.Fatal(err)
	}
	var c releaseConfig
	if err := yaml.UnmarshalWithOptions(raw, &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	variables, err := os.ReadFile(filepath.Join(moduleRoot, "internal/buildinfo/buildinfo.go"))
	if err != nil || !strings.Contains(string(variables), "\nvar version, commit, date string\n") {
		t.Fatalf("internal/buildinfo no longer declares the variables that the linker sets: %v", err)
	}
	goos := map[string][]string{}
	for _, b := range c.Builds {
		goos[b.ID] = b.GOOS
		exists(t, filepath.Join(b.Main, "main.go"), config)
		if b.Binary != b.ID || !slices.Equal(b.GOARCH, []string{"amd64", "arm64"}) || !slices.Contains(b.Env, "CGO_ENABLED=0") || !slices.Contains(b.Flags, "-trimpath") {
			t.Errorf("%s is not built as a static, trimmed program for amd64 and arm64: %+v", b.ID, b)
		}
		for _, name := range []string{"version=v{{ .Version }}", "commit={{ .FullCommit }}", "date={{ .CommitDate }}"} {
			if !strings.Contains(strings.Join(b.Ldflags, " "), "-X github.com/callyard/callyard/internal/buildinfo."+name) {
				t.Errorf("the ldflags of %s do not set %s", b.ID, name)
			}
		}
	}
	programs, err := filepath.Glob(filepath.Join(moduleRoot, "cmd", "*"))
	if err != nil || len(programs) < 4 || len(c.Archives) != 1 {
		t.Fatalf("found %d programs and %d archives, %v", len(programs), len(c.Archives), err)
	}
	for _, folder := range programs {
		name := filepath.Base(folder)
		if !slices.Equal(goos[name], []string{"linux", "darwin"}) {
			t.Errorf("%s is built for %v, want linux and darwin", name, goos[name])
		}
		if !slices.Contains(c.Archives[0].IDs, name) {
			t.Errorf("%s is in no archive", name)
		}
		image := false
		for _, i := range c.Images {
			image = image || i.BuildArgs["ROLE"] == name && slices.Contains(i.IDs, name) && slices.Equal(i.Images, []string{"ghcr.io/callyard/" + name})
		}
		if !image {
			t.Errorf("%s has no image", name)
		}
	}
	completions := false
	for _, file := range c.Archives[0].Files {
		switch file := file.(type) {
		case string:
			exists(t, file, config)
		case map[string]any:
			completions = completions || file["src"] == ".cache/completions/*" && file["dst"] == "completions"
		default:
			t.Errorf("the archives contain an unexpected file: %v", file)
		}
	}
	if !completions {
		t.Error("the archives lack the shell completions")
	}
	for _, i := range c.Images {
		exists(t, i.Dockerfile, config)
		if !slices.Equal(i.Platforms, []string{"linux/amd64", "linux/arm64"}) {
			t.Errorf("the image %s is for %v, want linux/amd64 and linux/arm64", i.ID, i.Platforms)
		}
		for _, id := range i.IDs {
			if goos[id] == nil {
				t.Errorf("the image %s contains %s, which no build makes", i.ID, id)
			}
		}
	}
	if len(c.Before.Hooks) != 2 || c.Before.Hooks[0] != "scripts/completions.sh" || !strings.HasPrefix(c.Before.Hooks[1], "helm package deploy/helm/callyard ") {
		t.Errorf("the hooks must write the completions and package the chart: %q", c.Before.Hooks)
	}
	exists(t, "deploy/helm/callyard/Chart.yaml", config)
	chart := []map[string]string{{"glob": ".cache/chart/callyard-*.tgz"}}
	if !slices.EqualFunc(c.Checksum.ExtraFiles, chart, sameMap) || !slices.EqualFunc(c.Release.ExtraFiles, chart, sameMap) {
		t.Errorf("the chart is missing from the checksums or the release files: %v %v", c.Checksum.ExtraFiles, c.Release.ExtraFiles)
	}
	if len(c.SBOMs) != 1 || c.SBOMs[0].Cmd != "cyclonedx-gomod" || !slices.Equal(c.SBOMs[0].IDs, c.Archives[0].IDs) || len(c.Signs) != 1 || c.Signs[0].Artifacts != "checksum" || len(c.ImageSigns) != 1 {
		t.Errorf("the release must have an SBOM by cyclonedx-gomod of each program in the archives, and signatures of checksums and images: %+v, %+v %+v", c.SBOMs, c.Signs, c.ImageSigns)
	}
}

func sameMap(a, b map[string]string) bool {
	return len(a) == len(b) && a["glob"] == b["glob"]
}

// TestWorkflowsPinActionsByCommit fails if a workflow uses an action by tag, because a tag can be
// moved to other code.
func TestWorkflowsPinActionsByCommit(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(moduleRoot, ".github/workflows/*.yaml"))
	if err != nil || len(names) < 3 {
		t.Fatalf("found %d workflows, %v", len(names), err)
	}
	pinned := regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var any map[string]any
		if err := yaml.Unmarshal(raw, &any); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for line := range strings.Lines(string(raw)) {
			if _, action, found := strings.Cut(strings.TrimSpace(line), "uses: "); found && !pinned.MatchString(action) {
				t.Errorf("%s: %q is not pinned as name@commit # version", name, action)
			}
		}
		for _, script := range regexp.MustCompile(`(?:^|\s)((?:scripts|\.ci)/[\w.-]+)`).FindAllStringSubmatch(string(raw), -1) {
			exists(t, script[1], name)
		}
	}
}

// TestDependabotLooksAtEveryLockFile fails if a folder was added or moved without an update of the
// configuration of Dependabot.
func TestDependabotLooksAtEveryLockFile(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(moduleRoot, ".github/dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directories []string `yaml:"directories"`
		} `yaml:"updates"`
	}
	if err := yaml.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	listed, found := map[string][]string{}, map[string][]string{}
	for _, u := range c.Updates {
		listed[u.Ecosystem] = u.Directories
	}
	files := map[string]string{"go.mod": "gomod", "package-lock.json": "npm", "requirements.txt": "pip"}
	err = fs.WalkDir(os.DirFS(moduleRoot), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if ecosystem := files[d.Name()]; ecosystem != "" && !d.IsDir() {
			found[ecosystem] = append(found[ecosystem], "/"+strings.TrimPrefix(filepath.Dir(name), "."))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, ecosystem := range files {
		slices.Sort(found[ecosystem])
		slices.Sort(listed[ecosystem])
		if !slices.Equal(found[ecosystem], listed[ecosystem]) {
			t.Errorf("%s: Dependabot watches %v, but the lock files are in %v", ecosystem, listed[ecosystem], found[ecosystem])
		}
	}
}

func TestEveryPathWithOwnersExists(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(moduleRoot, ".github/CODEOWNERS"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[0], "/") {
			exists(t, fields[0], "CODEOWNERS")
		}
	}
}

func TestNoticesMatchTheLinkedModules(t *testing.T) {
	if out, err := exec.Command(filepath.Join(moduleRoot, "scripts/notices.sh"), "--check").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// released matches the heading of a release in CHANGELOG.md, with its date as in Keep a Changelog.
var released = regexp.MustCompile(`^## \[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}$`)

// misplaced returns the faults of the headings of CHANGELOG.md.
func misplaced(changelog string) (faults []string) {
	first := true
	for line := range strings.Lines(changelog) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "## ") {
			continue
		}
		if isUnreleased := line == "## [Unreleased]"; isUnreleased != first || !isUnreleased && !released.MatchString(line) {
			faults = append(faults, line)
		}
		first = false
	}
	if first {
		faults = append(faults, "there is no heading")
	}
	return faults
}

func TestChangelogHasUnreleasedOnTopAndDatedReleases(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(moduleRoot, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range misplaced(string(raw)) {
		t.Errorf("CHANGELOG.md: %s", fault)
	}
	for text, wants := range map[string]int{
		"## [Unreleased]\n\n## [0.1.0] - 2026-11-26\n\n- a\n": 0,
		"## [0.1.0] - 2026-11-26\n\n## [Unreleased]\n":        2,
		"## [Unreleased]\n\n## [0.1.0]\n":                     1,
		"- a\n":                                               1,
	} {
		if got := misplaced(text); len(got) != wants {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestReleaseNotesAreTheSectionOfTheTag(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(moduleRoot, "scripts/release-notes.sh"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir() // the script reads CHANGELOG.md in its own tree
	if err := os.Mkdir(filepath.Join(root, "scripts"), 0o700); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(root, "scripts/release-notes.sh")
	const changelog = "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-11-26\n\n### Added\n\n- one\n\n## [0.0.1] - 2026-01-01\n\n- older\n"
	if err := errors.Join(os.WriteFile(copied, script, 0o600), os.WriteFile(filepath.Join(root, "CHANGELOG.md"), []byte(changelog), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tag, want string }{
		{"v0.1.0", "\n### Added\n\n- one\n"},
		{"v0.0.1", "\n- older\n"},
		{"v0.1.00", ""},
		{"vUnreleased", ""}, // its section is empty
	} {
		out, err := exec.Command("bash", copied, c.tag).CombinedOutput()
		if c.want == "" {
			if err == nil || !strings.Contains(string(out), `has no section "## [`+c.tag[1:]+`]"`) {
				t.Errorf("%s: %v %s", c.tag, err, out)
			}
			continue
		}
		if err != nil || string(out) != c.want {
			t.Errorf("%s: %v %q", c.tag, err, out)
		}
	}
}

// TestTmpOfEveryImageIsWritableForItsUser checks the folder itself: an engine gives its mode to a
// tmpfs that is mounted there, so that without it "docker run --read-only --tmpfs /tmp" has no
// writable folder.
func TestTmpOfEveryImageIsWritableForItsUser(t *testing.T) {
	images := filepath.Join(moduleRoot, "deploy/images")
	names, err := filepath.Glob(filepath.Join(images, "*Dockerfile"))
	if err != nil || len(names) < 3 {
		t.Fatalf("found %q, %v", names, err)
	}
	for _, name := range append(names, filepath.Join(images, "build.sh")) {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(raw); !regexp.MustCompile(`chmod 1777 \S*/?root\S*/tmp`).MatchString(text) {
			t.Errorf("%s does not make /tmp of the image writable", name)
		}
	}
}
