package bench

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// sampleReport returns a report with all fields set.
func sampleReport() *Report {
	r := &Report{
		Date:    time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Machine: Machine{OS: "linux", Arch: "amd64", CPUs: 2, CPU: "Example CPU @ 2.0 GHz", Go: "go1.26"},
		Targets: []string{DirectSDK, AllInOne, ThreeProcesses, "peer"}, Sizes: []int{200, 1_000_000}, Concurrency: []int{1, 50},
		RoundCount: 2, WarmupSeconds: 0.5, DurationSeconds: 2,
		Absent: map[string]string{DirectSession: "the everything server is not installed; run `npm ci` in e2e/servers"},
	}
	for s, size := range r.Sizes {
		for c, concurrency := range r.Concurrency {
			for t, name := range r.Targets {
				cell := Cell{Target: name, Size: size, Concurrency: concurrency}
				for round := range 2 {
					rate := float64((t+1)*(c*5+1)*1000+round*10) / float64(s*90+1)
					us := float64(concurrency) / rate * 1e6
					sample := Sample{
						Seconds: 2, Calls: int64(2 * rate), Rate: rate, P50: us, P90: us * 1.2, P99: us * 2, Max: us * 9,
						CPU: map[string]float64{generator: 6.25, toolServer: 25, name: 40},
					}
					if name == "peer" && size == 1_000_000 {
						sample = Sample{Seconds: 2, Errors: 3, Failures: map[string]int64{"status 500": 2, "reading an answer: EOF": 1}}
					}
					cell.Rounds = append(cell.Rounds, sample)
				}
				r.Cells = append(r.Cells, cell)
			}
		}
	}
	r.sum()
	return r
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (run with -update when the change is meant): %s", name, d)
	}
}

func TestTheTableMatchesItsGoldenFile(t *testing.T) {
	var b bytes.Buffer
	if err := sampleReport().WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.txt", b.Bytes())
}

func TestTheJSONMatchesItsGoldenFile(t *testing.T) {
	r := sampleReport()
	r.Sizes, r.Concurrency, r.Cells = r.Sizes[:1], r.Concurrency[:1], r.Cells[:2]
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", b.Bytes())
}

func TestPlotIsNotBlank(t *testing.T) {
	one := sampleReport()
	one.Sizes, one.Concurrency, one.Cells = one.Sizes[:1], one.Concurrency[:1], one.Cells[:4]
	empty := sampleReport()
	empty.Cells = nil
	for name, r := range map[string]*Report{"full": sampleReport(), "one point": one, "nothing answered": empty} {
		var b bytes.Buffer
		if err := r.WritePNG(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		picture, err := png.Decode(&b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		size := picture.Bounds().Size()
		if size.X < 800 || size.Y < 400 {
			t.Errorf("%s: the picture is %v", name, size)
		}
		// The legend on the right has the colours of all targets.
		legend := image.NewRGBA(image.Rect(0, 0, size.X/6, size.Y/2))
		draw.Draw(legend, legend.Rect, picture, image.Pt(size.X-legend.Rect.Dx(), 0), draw.Src)
		for i := range r.Targets {
			c, _ := look(i)
			if !slices.Contains(pixels(legend), color.RGBAModel.Convert(c).(color.RGBA)) {
				t.Errorf("%s: nothing in the legend has the colour of target %d", name, i)
			}
		}
	}
}

func pixels(m *image.RGBA) []color.RGBA {
	var all []color.RGBA
	for p := m.Pix; len(p) >= 4; p = p[4:] {
		all = append(all, color.RGBA{R: p[0], G: p[1], B: p[2], A: p[3]})
	}
	return all
}

func TestTicksOfALogarithmicAxisAreLabelledWhereItHelps(t *testing.T) {
	var labels []string
	for _, tick := range (decadeTicks{}).Ticks(0.3, 4000) {
		if tick.Label != "" {
			labels = append(labels, tick.Label)
		}
	}
	if d := cmp.Diff([]string{"0.5", "1", "2", "5", "10", "20", "50", "100", "200", "500", "1k", "2k"}, labels); d != "" {
		t.Error(d)
	}
}

func TestTheCPUModelIsFoundInCpuinfo(t *testing.T) {
	if got := cpuModel("processor\t: 0\nmodel name\t: Some CPU: fast\n\nmodel name\t: other\n"); got != "Some CPU: fast" {
		t.Errorf("found %q", got)
	}
	if got := cpuModel("nothing of the kind"); got != "" {
		t.Errorf("found %q", got)
	}
}
