package stats

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// exactUpTo is the maximum number of differing samples for which all sign flips are enumerated.
const exactUpTo = 20

// Difference compares two runs on the same samples, b minus a.
type Difference struct {
	Estimate
	// P is the p-value of the sign-flip permutation test: the probability of a mean difference of at
	// least this size if the runs do not differ. Exact means that all permutations were enumerated.
	P     float64 `json:"p"`
	Exact bool    `json:"exact"`
	// Detectable is the smallest true difference that a comparison of these samples finds
	// with a power of 80 % at 5 %.
	Detectable float64 `json:"detectable"`
	// Differing is the number of samples whose values differ.
	Differing int `json:"differing"`
	// Equivalent is the result of the equivalence test, if requested.
	Equivalent *Equivalence `json:"equivalent,omitempty"`
}

// Equivalence is the result of two one-sided tests.
type Equivalence struct {
	// Margin is the largest difference that counts as equivalent.
	Margin float64 `json:"margin"`
	// P is the larger of the two p-values; at most 0.05 means that the runs are equivalent.
	P          float64 `json:"p"`
	Equivalent bool    `json:"equivalent"`
}

// Compare compares the values of two runs, aligned by sample. A margin above 0 requests the
// equivalence test. Compare returns an error if ctx ends or the lengths differ.
func Compare(ctx context.Context, a, b []float64, margin float64, options Options) (Difference, error) {
	o := options.filled()
	if len(a) != len(b) {
		return Difference{}, fmt.Errorf("one run has %d samples, the other %d", len(a), len(b))
	}
	differences := make([]float64, len(a))
	var changed []float64
	for i := range a {
		if differences[i] = b[i] - a[i]; differences[i] != 0 {
			changed = append(changed, differences[i])
		}
	}
	out := Difference{Differing: len(changed), Detectable: detectable(differences)}
	replicates, err := Replicates(ctx, [][]float64{differences}, o)
	if err != nil {
		return out, err
	}
	means := replicates[0]
	out.Mean = Mean(differences)
	out.Low, out.High = Interval(means, o.Confidence)
	if out.P, out.Exact, err = signFlip(ctx, changed, o); err != nil {
		return out, err
	}
	if margin > 0 {
		out.Equivalent = equivalence(means, margin)
	}
	return out, nil
}

// detectable returns 2.80 standard errors of the mean difference: 1.96 for the level of 5 %, and 0.84
// for the power of 80 %.
func detectable(differences []float64) float64 {
	n := float64(len(differences))
	if n < 2 {
		return 0
	}
	mean, squares := Mean(differences), 0.0
	for _, d := range differences {
		squares += float64((d - mean) * (d - mean))
	}
	return 2.80 * math.Sqrt(squares/(n-1)) / math.Sqrt(n)
}

// equivalence performs two one-sided tests on the bootstrap means of the difference.
func equivalence(means []float64, margin float64) *Equivalence {
	below, above := 0, 0
	for _, m := range means {
		if m <= -margin {
			below++
		}
		if m >= margin {
			above++
		}
	}
	p := float64(1+max(below, above)) / float64(len(means)+1)
	return &Equivalence{Margin: margin, P: p, Equivalent: p <= 0.05}
}

// signFlip performs the permutation test of the mean of paired differences: if the runs do not
// differ, each difference is as probable as its opposite.
func signFlip(ctx context.Context, differences []float64, o Options) (p float64, exact bool, err error) {
	total, size := 0.0, 0.0
	for _, d := range differences {
		total += d
		size += math.Abs(d)
	}
	// Sums in a different order differ by rounding, but count as equal.
	bound := math.Abs(total) - 1e-12*size
	if len(differences) <= exactUpTo {
		return signFlipExact(differences, total, bound), true, ctx.Err()
	}
	counts := make([]int, o.blocks())
	err = inBlocks(ctx, o, func(random *rand.PCG, from, to int) {
		hits := 0
		for range to - from {
			if math.Abs(flipped(random, differences)) >= bound {
				hits++
			}
		}
		counts[from/blockSize] = hits
	})
	hits := 0
	for _, n := range counts {
		hits += n
	}
	return float64(1+hits) / float64(o.Iterations+1), false, err
}

// flipped returns the sum of the differences with random signs.
func flipped(random *rand.PCG, differences []float64) (sum float64) {
	for len(differences) > 0 {
		part := differences[:min(64, len(differences))]
		signs := random.Uint64()
		for _, d := range part {
			sum += math.Float64frombits(math.Float64bits(d) ^ signs<<63)
			signs >>= 1
		}
		differences = differences[len(part):]
	}
	return sum
}

// signFlipExact enumerates all sign flips in Gray code order, which changes one sign at a time.
func signFlipExact(differences []float64, total, bound float64) float64 {
	all, hits := 1<<len(differences), 0
	signed := slices.Clone(differences)
	for i := range all {
		if i > 0 {
			at := bits.TrailingZeros(uint(i))
			total -= 2 * signed[at]
			signed[at] = -signed[at]
		}
		if math.Abs(total) >= bound {
			hits++
		}
	}
	return float64(hits) / float64(all)
}

// McNemar returns the p-value of the exact two-sided test for paired binary results. gained is the
// number of samples that became right, and lost the number that became wrong.
func McNemar(gained, lost int) float64 {
	n := gained + lost
	if n == 0 {
		return 1
	}
	sum, term := new(big.Int), big.NewInt(1)
	for k := 0; k <= min(gained, lost); k++ {
		if k > 0 {
			term.Mul(term, big.NewInt(int64(n-k+1))).Quo(term, big.NewInt(int64(k)))
		}
		sum.Add(sum, term)
	}
	p, _ := new(big.Rat).SetFrac(sum.Lsh(sum, 1), new(big.Int).Lsh(big.NewInt(1), uint(n))).Float64()
	return min(1, p)
}

// Holm adjusts the p-values of several tests, so that the probability of any false finding stays below
// the level to which they are compared. It preserves the order of the values.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	adjusted, highest := make([]float64, len(p)), 0.0
	for rank, i := range order {
		highest = max(highest, min(1, float64(len(p)-rank)*p[i]))
		adjusted[i] = highest
	}
	return adjusted
}

// PassAt returns the probability that at least one of k trials is right, an unbiased estimate from n
// trials of which c are right. It returns NaN unless 1 <= k <= n and 0 <= c <= n.
func PassAt(n, c, k int) float64 { return 1 - PassAll(n, n-c, k) } // not all of them are wrong

// PassAll returns the probability that all of k trials are right, which is written pass^k. It is an
// unbiased estimate like that of [PassAt].
func PassAll(n, c, k int) float64 {
	if k < 1 || k > n || c < 0 || c > n {
		return math.NaN()
	}
	all := 1.0
	for i := range k { // C(c, k) / C(n, k)
		all *= max(0, float64(c-i)) / float64(n-i)
	}
	return all
}
