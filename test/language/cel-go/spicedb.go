package main

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"

	"github.com/authzed/cel-go/cel"
	"github.com/authzed/cel-go/common/types"
	"github.com/authzed/cel-go/common/types/ref"
)

// spiceDBAddress is an address as a value of the CEL of SpiceDB.
type spiceDBAddress struct{ netip.Addr }

var spiceDBAddressType = cel.ObjectType("IPAddress")

func (a spiceDBAddress) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("an address has no native form")
}

func (a spiceDBAddress) ConvertToType(to ref.Type) ref.Val {
	switch to {
	case types.StringType:
		return types.String(a.String())
	case types.TypeType:
		return spiceDBAddressType
	}
	return types.NewErr("an address is no %s", to)
}

func (a spiceDBAddress) Equal(other ref.Val) ref.Val {
	that, ok := other.(spiceDBAddress)
	if !ok {
		return types.ValOrErr(other, "no such overload")
	}
	return types.Bool(a == that)
}

func (a spiceDBAddress) Type() ref.Type { return spiceDBAddressType }
func (a spiceDBAddress) Value() any     { return a }

func readSpiceDBAddress(text string) (any, error) {
	address, err := netip.ParseAddr(text)
	return spiceDBAddress{address.Unmap()}, err
}

var spiceDBBase = func() *cel.Env {
	env, err := cel.NewEnv(
		cel.Function("in_cidr", cel.MemberOverload("ipaddress_in_cidr_string",
			[]*cel.Type{spiceDBAddressType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(func(address, cidr ref.Val) ref.Val {
				network, err := netip.ParsePrefix(cidr.Value().(string))
				if err != nil {
					return types.WrapErr(err)
				}
				return types.Bool(network.Contains(address.(spiceDBAddress).Addr))
			}))),
		cel.DefaultUTCTimeZone(true),
		cel.OptionalTypes(cel.OptionalTypesVersion(0)),
		cel.EnableMacroCallTracking(),
		cel.ParserExpressionSizeLimit(-1),
	)
	if err != nil {
		fail(err)
	}
	return env
}()

func spiceDBType(kind string) *cel.Type {
	if element, ok := inner(kind, "list"); ok {
		return cel.ListType(spiceDBType(element))
	}
	if element, ok := inner(kind, "map"); ok {
		return cel.MapType(cel.StringType, spiceDBType(element))
	}
	return map[string]*cel.Type{
		"any": cel.DynType, "bool": cel.BoolType, "string": cel.StringType, "int": cel.IntType,
		"bytes": cel.BytesType, "uint": cel.IntType, "double": cel.DoubleType, "duration": cel.DurationType,
		"timestamp": cel.TimestampType, "ipaddress": spiceDBAddressType,
	}[kind]
}

// askSpiceDB does what SpiceDB does with a caveat, but for the limit of its cost.
func askSpiceDB(q question) (bool, error) {
	variables := []cel.EnvOption{}
	for name, kind := range q.Parameters {
		kind := spiceDBType(kind)
		if kind == nil {
			return false, &invalidError{fmt.Errorf("%s has an unknown type", name)}
		}
		variables = append(variables, cel.Variable(name, kind))
	}
	env, err := spiceDBBase.Extend(variables...)
	if err != nil {
		return false, &invalidError{err}
	}
	ast, issues := env.Compile(q.Expression)
	if err := issues.Err(); err != nil {
		return false, &invalidError{err}
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptTrackState), cel.EvalOptions(cel.OptPartialEval))
	if err != nil {
		return false, &invalidError{err}
	}
	if !reflect.DeepEqual(ast.OutputType(), cel.BoolType) {
		return false, &invalidError{fmt.Errorf("it is a %s", ast.OutputType())}
	}
	values, err := bind(q, converter{address: readSpiceDBAddress})
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
