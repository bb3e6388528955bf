package risk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"

	"github.com/callyard/callyard/pkg/risk/celcost"
	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

const (
	// costLimit limits one evaluation of a condition in CEL's cost units. Scanning a
	// string of 1 MiB costs a little over 100,000.
	costLimit = 200_000
	// conditionTimeout limits conditions that loop over arguments, in case the cost of a
	// function is wrong. It is ten times what the limit of cost allows, because a process that
	// stands still for a moment must not change the assessment of a call.
	conditionTimeout = time.Second
	// maxCondition (bytes) and maxNodes limit the condition itself.
	maxCondition = 4096
	maxNodes     = 2000
	// maxRegexp limits a regular expression, in program instructions. maxSearched limits
	// the size of the arguments that it searches, because CEL counts its cost only
	// afterwards.
	maxRegexp   = 500
	maxSearched = 64 << 10
)

// The variables of conditions that can be missing; see [Missing].
const (
	varArguments = "args"
	varGroups    = "principal.groups"
)

// condition is a compiled CEL expression.
type condition struct {
	program cel.Program
	// constant is the value of an expression that has the same value for every call.
	constant hint
	// loops means that a macro iterates over a list or map, so that a timeout is needed.
	loops   bool
	timeout time.Duration
	// searches means that the expression has a regular expression.
	searches bool
	// arguments and groups mean that the expression reads these parts of a call.
	arguments, groups bool
}

// Missing describes the parts of a call that are unknown when it is assessed.
type Missing struct{ Arguments, Groups bool }

// lacks reports whether the condition needs a missing part. A regular expression needs the
// arguments, because their size decides whether it may run.
func (c *condition) lacks(m Missing) bool {
	return m.Arguments && (c.arguments || c.searches) || m.Groups && c.groups
}

// facts holds the variables of conditions for one call. The arguments are decoded once,
// when the first condition reads them.
type facts struct {
	in   *Input
	args any
}

// ResolveName returns the value of a variable.
func (f *facts) ResolveName(name string) (any, bool) {
	switch name {
	case varArguments:
		if f.args == nil {
			f.args = argsOf(f.in.Arguments)
		}
		return f.args, true
	case "tool":
		return types.String(f.in.Tool), true
	case "server":
		return types.String(f.in.Server), true
	case "principal.name":
		return types.String(f.in.Principal.Name), true
	case "principal.owner":
		return types.String(cmp.Or(f.in.Principal.Owner, f.in.Principal.Name)), true
	case varGroups:
		return types.NewStringList(types.DefaultTypeAdapter, f.in.Principal.Groups), true
	}
	return nil, false
}

// Parent returns nil, because there are no other variables.
func (f *facts) Parent() interpreter.Activation { return nil }

// newEnv returns the CEL environment of conditions. The fields of the principal are separate
// variables with dots in their names, so that a wrong field or type is an error of the policy
// and not of a call.
func newEnv() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable(varArguments, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("tool", cel.StringType),
		cel.Variable("server", cel.StringType),
		cel.Variable("principal.name", cel.StringType),
		cel.Variable("principal.owner", cel.StringType),
		cel.Variable(varGroups, cel.ListType(cel.StringType)),
		cel.OptionalTypes(),
		ext.Strings(),
		cel.CrossTypeNumericComparisons(true),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateComprehensionNestingLimit(2), cel.ValidateRegexProgramSizeLimit(maxRegexp)),
		cel.ParserExpressionSizeLimit(maxCondition),
		cel.ExpressionNodeLimit(maxNodes),
		cel.RegexProgramSizeLimit(maxRegexp),
	)
}

// issue is an error in a condition. line and column start at 1 and are relative to the
// condition; 0 means the whole condition.
type issue struct {
	line, column int
	message      string
}

// compile compiles the source of a condition. It does not panic.
func compile(env *cel.Env, source string) (c *condition, issues []issue) {
	defer func() {
		if recover() != nil {
			c, issues = nil, []issue{{message: "the condition cannot be parsed; simplify it."}}
		}
	}()
	tree, found := env.Compile(source)
	if found.Err() != nil {
		for _, e := range found.Errors() {
			issues = append(issues, issue{e.Location.Line(), e.Location.Column() + 1, celSentence(e.Message)})
			if strings.HasPrefix(e.Message, syntaxError) {
				return nil, issues[len(issues)-1:] // the issues before it result from the syntax error
			}
		}
		return nil, issues
	}
	if out := tree.OutputType(); !out.IsExactType(cel.BoolType) {
		what := cel.FormatCELType(out)
		if out.IsExactType(cel.DynType) {
			what = "a value of any type"
		}
		return nil, []issue{{message: fmt.Sprintf("the condition returns %s, but must return true or false; add a comparison, such as == true.", what)}}
	}
	program, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize), celcost.Tracking(), cel.CostLimit(costLimit), cel.InterruptCheckFrequency(32))
	if err != nil {
		return nil, []issue{{message: "the condition cannot be used: " + yamldoc.OneLine(err.Error()) + "."}}
	}
	c = &condition{program: program, timeout: conditionTimeout}
	free := true
	ast.PostOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			c.loops = true
		case ast.IdentKind:
			free = false
			c.arguments = c.arguments || e.AsIdent() == varArguments
			c.groups = c.groups || e.AsIdent() == varGroups
		case ast.SelectKind:
			free = false
		case ast.CallKind:
			c.searches = c.searches || e.AsCall().FunctionName() == "matches"
			if message := refused(e.AsCall()); message != "" {
				where := tree.NativeRep().SourceInfo().GetStartLocation(e.ID())
				issues = append(issues, issue{where.Line(), where.Column() + 1, message})
			}
		}
	}))
	if issues != nil {
		return nil, issues
	}
	if free && !c.loops {
		if value, _, err := program.Eval(cel.NoVars()); err == nil {
			if c.constant = no; value == types.True {
				c.constant = ok
			}
		}
	}
	return c, nil
}

// refused returns the reason why a function call is not allowed in a condition, or "". The
// caller of a tool must not control the work and memory that an assessment takes.
func refused(call ast.CallExpr) string {
	switch name := call.FunctionName(); name {
	case "matches":
		if pattern := call.Args()[len(call.Args())-1]; pattern.Kind() != ast.LiteralKind {
			return "a regular expression must be a literal, not a value of the call."
		}
	case "replace", "join", "format":
		return name + "() is not supported in conditions; compare the parts."
	}
	return ""
}

// eval evaluates the condition. If that is impossible, why is a sentence that gives the reason
// and contains no values; otherwise it is "".
func (c *condition) eval(known *facts) (holds bool, why string) {
	defer func() {
		if recover() != nil {
			holds, why = false, "it failed."
		}
	}()
	if c.searches && len(known.in.Arguments) > maxSearched {
		return false, "the arguments are too large for a regular expression."
	}
	var value any
	var err error
	if c.loops {
		ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
		defer cancel()
		value, _, err = c.program.ContextEval(ctx, known)
	} else {
		value, _, err = c.program.Eval(known)
	}
	if err != nil {
		return false, whyFailed(err)
	}
	b, ok := value.(types.Bool)
	if !ok {
		return false, "it did not return true or false."
	}
	return bool(b), ""
}

// whyFailed maps an error of CEL to a sentence. The texts of CEL may contain values and are
// not passed on.
func whyFailed(err error) string {
	var canceled interpreter.EvalCancelledError
	text := err.Error()
	switch {
	case errors.Is(err, errUnreadable):
		return errUnreadable.Error()
	case errors.Is(err, errTooBig):
		return errTooBig.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long."
	case errors.As(err, &canceled) || strings.Contains(text, "cost limit"):
		return "it exceeded the cost limit of conditions."
	case strings.HasPrefix(text, "no such key"), strings.HasPrefix(text, "index out of bounds"):
		return "a value that it reads does not exist. If a value can be absent, check it with has() first."
	case strings.HasPrefix(text, "no such overload"):
		return "a value does not have the expected type."
	}
	return "it cannot use a value."
}
