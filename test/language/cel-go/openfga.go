package main

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// openFGAAddress is an address as a value of the CEL of OpenFGA.
type openFGAAddress struct{ netip.Addr }

var openFGAAddressType = cel.ObjectType("IPAddress")

func (a openFGAAddress) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("an address has no native form")
}

func (a openFGAAddress) ConvertToType(to ref.Type) ref.Val {
	switch to {
	case types.StringType:
		return types.String(a.String())
	case types.TypeType:
		return openFGAAddressType
	}
	return types.NewErr("an address is no %s", to)
}

func (a openFGAAddress) Equal(other ref.Val) ref.Val {
	that, ok := other.(openFGAAddress)
	if !ok {
		return types.NoSuchOverloadErr()
	}
	return types.Bool(a.Compare(that.Addr) == 0)
}

func (a openFGAAddress) Type() ref.Type { return openFGAAddressType }
func (a openFGAAddress) Value() any     { return a }

func readOpenFGAAddress(text string) (any, error) {
	address, err := netip.ParseAddr(text)
	return openFGAAddress{address.Unmap()}, err
}

var openFGABase = func() *cel.Env {
	env, err := cel.NewEnv(
		cel.Function("in_cidr", cel.MemberOverload("ipaddr_in_cidr",
			[]*cel.Type{openFGAAddressType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(func(address, cidr ref.Val) ref.Val {
				network, err := netip.ParsePrefix(cidr.Value().(string))
				if err != nil {
					return types.WrapErr(err)
				}
				if first := network.Addr().Unmap(); first.Is4() && network.Bits() >= 96 {
					network = netip.PrefixFrom(first, network.Bits()-96)
				}
				return types.Bool(network.Contains(address.(openFGAAddress).Addr))
			}))),
		cel.Function("ipaddress", cel.Overload("string_to_ipaddress",
			[]*cel.Type{cel.StringType}, openFGAAddressType,
			cel.UnaryBinding(func(text ref.Val) ref.Val {
				address, err := readOpenFGAAddress(text.Value().(string))
				if err != nil {
					return types.WrapErr(err)
				}
				return address.(ref.Val)
			}))),
		cel.EagerlyValidateDeclarations(true),
	)
	if err != nil {
		fail(err)
	}
	return env
}()

func openFGAType(kind string) *cel.Type {
	if element, ok := inner(kind, "list"); ok {
		return cel.ListType(openFGAType(element))
	}
	if element, ok := inner(kind, "map"); ok {
		return cel.MapType(cel.StringType, openFGAType(element))
	}
	return map[string]*cel.Type{
		"any": cel.AnyType, "bool": cel.BoolType, "string": cel.StringType, "int": cel.IntType,
		"uint": cel.UintType, "double": cel.DoubleType, "duration": cel.DurationType,
		"timestamp": cel.TimestampType, "ipaddress": openFGAAddressType,
	}[kind]
}

// askOpenFGA does what OpenFGA does with a condition of a model, but for the limit of its cost.
func askOpenFGA(q question) (bool, error) {
	variables := []cel.EnvOption{}
	for name, kind := range q.Parameters {
		kind := openFGAType(kind)
		if kind == nil {
			return false, &invalidError{fmt.Errorf("%s has an unknown type", name)}
		}
		variables = append(variables, cel.Variable(name, kind))
	}
	env, err := openFGABase.Extend(variables...)
	if err != nil {
		return false, &invalidError{err}
	}
	ast, issues := env.Compile(q.Expression)
	if err := issues.Err(); err != nil {
		return false, &invalidError{err}
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.InterruptCheckFrequency(100), cel.EvalOptions(cel.OptPartialEval))
	if err != nil {
		return false, &invalidError{err}
	}
	if !reflect.DeepEqual(ast.OutputType(), cel.BoolType) {
		return false, &invalidError{fmt.Errorf("it is a %s", ast.OutputType())}
	}
	values, err := bind(q, converter{isExact: true, address: readOpenFGAAddress})
	if err != nil {
		return false, err
	}
	activation, err := env.PartialVars(values)
	if err != nil {
		return false, err
	}
	out, _, err := program.Eval(activation)
	if err != nil {
		return false, err
	}
	met, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("it comes to %v", out)
	}
	return met, nil
}
