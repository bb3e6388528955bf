package stats

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func columns(n int, seed uint64) [][]float64 {
	random := rand.New(rand.NewPCG(seed, 1))
	out := make([][]float64, 4)
	for range n {
		for k := range out {
			out[k] = append(out[k], float64(random.IntN(3))/2)
		}
	}
	return out
}

func TestTheBootstrapIsTheSameOnAnyNumberOfProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	data := append(columns(301, 5), columns(301, 6)[:2]...)
	strata := make([]int, 301)
	for i := range strata {
		strata[i] = i % 6
	}
	for _, o := range []Options{{}, {Strata: strata}, {Iterations: 777, Seed: 9}} {
		runtime.GOMAXPROCS(1)
		want, err := Bootstrap(t.Context(), data, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, processors := range []int{2, 3, 8} {
			runtime.GOMAXPROCS(processors)
			if got, err := Bootstrap(t.Context(), data, o); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%d processors: %v, %v, want %v", processors, got, err, want)
			}
		}
	}
}

func TestBootstrapIsReproducibleAcrossReleases(t *testing.T) {
	got, err := Bootstrap(t.Context(), columns(300, 7)[:1], Options{})
	want := Estimate{Mean: 0.5133333333333333, Low: 0.4683333333333333, High: 0.56}
	if err != nil || got[0] != want {
		t.Errorf("%#v, %v; a report made before would differ now", got[0], err)
	}
}

func TestIntervalsAgreeWithTheNormalDistribution(t *testing.T) {
	ones := make([]float64, 1000)
	for i := range 300 {
		ones[i] = 1
	}
	got, err := Bootstrap(t.Context(), [][]float64{ones}, Options{})
	half := 1.96 * math.Sqrt(0.3*0.7/1000)
	if err != nil || math.Abs(got[0].Low-(0.3-half)) > 0.002 || math.Abs(got[0].High-(0.3+half)) > 0.002 {
		t.Errorf("%v, %v; want 0.3 ± %.4f", got, err, half)
	}
}

func TestStrataKeepTheirSize(t *testing.T) {
	values, strata := make([]float64, 100), make([]int, 100)
	for i := range values {
		values[i], strata[i] = float64(i%2), i%2
	}
	got, err := Bootstrap(t.Context(), [][]float64{values}, Options{Strata: strata})
	if err != nil || got[0] != (Estimate{0.5, 0.5, 0.5}) {
		t.Errorf("%v, %v: strata without variance have an interval of width 0", got, err)
	}
}

func TestPercentilesAreThoseOfNumpy(t *testing.T) {
	for q, want := range map[float64]float64{0: 1, 0.025: 1.075, 0.5: 2.5, 0.975: 3.925, 1: 4} {
		if got := percentile([]float64{1, 2, 3, 4}, q); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
}

func TestFaultyInputIsAnError(t *testing.T) {
	if _, err := Bootstrap(t.Context(), [][]float64{{1}, {1, 2}}, Options{}); err == nil {
		t.Error("columns of different lengths")
	}
	if _, err := Bootstrap(t.Context(), [][]float64{{1}}, Options{Strata: []int{1, 2}}); err == nil {
		t.Error("too many strata")
	}
	if _, err := Compare(t.Context(), []float64{1}, nil, 0, Options{}); err == nil {
		t.Error("runs of different lengths")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Bootstrap(ctx, columns(10, 1), Options{}); err == nil {
		t.Error("canceled")
	}
}

func TestEqualRunsDoNotDiffer(t *testing.T) {
	run := columns(300, 3)[0]
	got, err := Compare(t.Context(), run, run, 0.02, Options{})
	if err != nil || got.P != 1 || got.Mean != 0 || got.Low != 0 || got.High != 0 || got.Differing != 0 || !got.Equivalent.Equivalent {
		t.Errorf("%+v, %v", got, err)
	}
}

// flips returns two runs of binary results on n samples. Each sample differs with probability share.
// If net is above 0, net more of the differing samples favour the second run than the first.
func flips(random *rand.Rand, n int, share float64, net int) (a, b []float64) {
	a, b = make([]float64, n), make([]float64, n)
	var changed []int
	for i := range a {
		a[i] = float64(random.IntN(2))
		b[i] = a[i]
		if random.Float64() < share {
			changed = append(changed, i)
		}
	}
	gains := 0
	for k, i := range changed {
		up := random.IntN(2) == 0
		if net > 0 {
			up = k < (len(changed)+net)/2
		}
		a[i], b[i] = 1, 0
		if up {
			a[i], b[i] = 0, 1
			gains++
		}
	}
	return a, b
}

func TestRealGainIsDetected(t *testing.T) {
	const n = 1000
	repeats := 200
	if testing.Short() {
		repeats = 20
	}
	random, found := rand.New(rand.NewPCG(11, 1)), 0
	for range repeats {
		a, b := flips(random, n, 0.10, 30)
		got, err := Compare(t.Context(), a, b, 0, Options{Iterations: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if got.P < 0.05 && got.Low > 0 {
			found++
		}
	}
	if found < repeats*9/10 {
		t.Errorf("a gain of 3 points was found in %d of %d repeats", found, repeats)
	}
	t.Logf("found in %d of %d repeats", found, repeats)
}

func TestFalsePositiveRateIsBounded(t *testing.T) {
	const n = 100
	repeats := 2000
	if testing.Short() {
		repeats = 400
	}
	random, found := rand.New(rand.NewPCG(12, 1)), 0
	for range repeats {
		differences := make([]float64, n)
		for i := range differences {
			differences[i] = random.Float64() - random.Float64()
		}
		p, _, err := signFlip(t.Context(), differences, Options{Iterations: 1000}.filled())
		if err != nil {
			t.Fatal(err)
		}
		if p < 0.05 {
			found++
		}
	}
	share := float64(found) / float64(repeats)
	if share < 0.03 || share > 0.07 {
		t.Errorf("p < 0.05 in %.1f %% of the repeats without a difference", 100*share)
	}
	t.Logf("p < 0.05 in %.1f %%", 100*share)
}

func TestThePermutationTestIsExactForFewSamples(t *testing.T) {
	// Of the 2^5 sign flips, only the 2 with equal signs reach the sum: 2 of 32.
	a, b := make([]float64, 50), make([]float64, 50)
	for i := range 5 {
		b[i] = 0.1
	}
	got, err := Compare(t.Context(), a, b, 0, Options{})
	if err != nil || got.P != 2.0/32 || !got.Exact {
		t.Errorf("%+v, %v", got, err)
	}
	for i := range 21 {
		b[i] = 0.1
	}
	if got, err = Compare(t.Context(), a, b, 0, Options{}); err != nil || got.Exact || got.P != 1.0/10_001 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTheComparisonIsTheSameOnAnyNumberOfProcessors(t *testing.T) {
	a, b := columns(500, 1)[0], columns(500, 2)[0]
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want, err := Compare(t.Context(), a, b, 0.05, Options{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GOMAXPROCS(2)
	if got, err := Compare(t.Context(), a, b, 0.05, Options{}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestMcNemarIsExact(t *testing.T) {
	for _, c := range []struct {
		gained, lost int
		want         float64
	}{{0, 0, 1}, {1, 0, 1}, {5, 0, 0.0625}, {0, 10, 0.001953125}, {6, 2, 0.2890625}, {5, 5, 1}, {40, 20, 0.01348929373119186}} {
		if got := McNemar(c.gained, c.lost); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d and %d: %v, want %v", c.gained, c.lost, got, c.want)
		}
	}
	if got := McNemar(10_000, 10_000); got != 1 {
		t.Errorf("large numbers: %v", got)
	}
}

func TestHolmAdjustmentIsMonotonic(t *testing.T) {
	got := Holm([]float64{0.04, 0.01, 0.03, 0.005})
	want := []float64{0.06, 0.03, 0.06, 0.02}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("%v, want %v", got, want)
			break
		}
	}
}

func TestPassAtK(t *testing.T) {
	for _, c := range []struct {
		n, c, k      int
		atLeast, all float64
	}{{4, 2, 1, 0.5, 0.5}, {4, 2, 2, 5.0 / 6, 1.0 / 6}, {4, 2, 3, 1, 0}, {4, 4, 4, 1, 1}, {4, 0, 4, 0, 0}} {
		if one, all := PassAt(c.n, c.c, c.k), PassAll(c.n, c.c, c.k); math.Abs(one-c.atLeast) > 1e-12 || math.Abs(all-c.all) > 1e-12 {
			t.Errorf("%+v: %v, %v", c, one, all)
		}
	}
	if !math.IsNaN(PassAt(3, 1, 4)) || !math.IsNaN(PassAll(3, 1, 0)) {
		t.Error("k that is not possible has a value")
	}
}

// On one core, N=300 and B=10,000 for 4 metrics must take less than 60 ms, and N=10,000 less than 2 s.
func BenchmarkBootstrap(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, n := range map[string]int{"300": 300, "10000": 10_000} {
		b.Run(name, func(b *testing.B) {
			data := columns(n, 1)
			for b.Loop() {
				if _, err := Bootstrap(b.Context(), data, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
