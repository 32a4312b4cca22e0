"""Renders snippets with Jinja as transformers sets it up and writes what comes out, or that an error does.

    jinja.py > ../../../runtime/text/jinja/testdata/snippets.json
"""

import json
import sys

from transformers.utils import chat_template_utils

CONTEXT = {
    "a": 1, "b": 2.5, "neg": -7, "t": True, "f": False, "n": None, "s": "Hello, World", "u": "naïve Straße ΟΔΟΣ 漢字 🙂",
    "empty": "", "ws": "  \t padded \n ", "lines": "one\ntwo\r\nthree\n\nfive", "html": "<b>\"x\" & 'y'</b>",
    "xs": [3, 1, 2], "words": ["banana", "Apple", "cherry", "apple"], "none": [], "nested": [[1, 2], [3, [4, "x"]]],
    "d": {"z": 1, "a": {"k": [1, 2, {"q": None}]}, "items": "shadow", "f": 1.0, "t": True},
    "users": [{"name": "Bo", "age": 30, "city": "Rome"}, {"name": "al", "age": 25, "city": "Oslo"},
              {"name": "Cy", "age": 35, "city": "Rome"}, {"name": "dan", "city": None}],
    "tricky": {"quote": "it's \"q\"", "ctrl": "\u0001\u007f\u0085\u00a0\u200b\n\t\\", "emoji": "🙂é", "big": 18446744073709551615,
               "floats": [1e16, 1e15, 1.5e-5, 0.0001, -0.0, 1e100, 3.0, 123456789.123]},
}

EXPRESSIONS = r"""
a + 1 | b * 2 | a / 2 | neg // 2 | neg % 3 | 2 ** 10 | 2 ** -1 | -a ** 2 | 7 // 2.0 | 7 % -3 | 7.5 % -2 | -7.5 // 2 | 1e3 | 10 / 5 | 0x1f | 1_000 | 0b11
t + t | t and 'x' or 'y' | n or 'dflt' | not n | not t == f | 1 < 2 < 3 | 1 < 3 < 2 | 1 == 1.0 | '1' == 1 | 'a' < 'b' | [1, 2] < [1, 3] | a is defined and a
'x' if t else 'y' | 'x' if f | ('x' if f) is defined | 'a' if f else 'b' if f else 'c' | missing | missing is defined | missing is undefined | missing or 'q' | missing ~ 'q' | missing | default('q')
missing == missing2 | missing.x | missing['x'] | missing + 'x' | 'x' + missing | missing() | missing > 1 | missing in s | missing in xs | 'x' in missing | missing | length | missing | list | missing | join | missing | trim | missing|tojson
d.nope | d.nope.x | d.nope is defined | d['nope'] is none | d.a.k[2].q | d.a.k[-1]['q'] is none | d.items | d['items'] | d.items() | d.keys() | d.values() | d.items() | list | d | length | 'z' in d | d.get('z') | d.get('zz') | d.get('zz', 4)
s[0] | s[-1] | s[1:4] | s[:-3] | s[::-1] | s[::2] | s[10:2:-2] | s[100] | s[5:100] | u[6:12] | u[-1] | u[::-1] | xs[1:] | xs[::-1] | xs[5] | xs[-4] | xs[0:2] + [9] | (1, 2, 3)[1:] | nested[1][1][1] | s['upper']() | xs['0'] | xs.0
s.upper() | s.lower() | u.upper() | u.lower() | u.title() | s.title() | u.capitalize() | s.swapcase() | u.casefold() | 'ß'.upper() | 'ŉﬁ'.upper() | 'ǆ'.title()
ws.strip() | ws.lstrip() | ws.rstrip() | s.strip('Hd') | s.lstrip('He') | s.rstrip('dl') | '\n\n x\u00a0'.strip() | 'xxabcxx'.strip('x') | s.split() | s.split(',') | s.split(', ', 1) | lines.split('\n') | ws.split() | ' a  b '.split(' ') | 'a,b,c'.rsplit(',', 1) | ' a b  c '.rsplit(None, 1) | ' a b  c '.split(None, 1) | 'abc'.split('') | ''.split() | ''.split(',') | '  '.rsplit() | 'a b c d'.rsplit()
lines.splitlines() | lines.splitlines(true) | s.partition(', ') | s.rpartition('o') | s.partition('zz') | s.rpartition('zz') | s.replace('o', '0') | s.replace('o', '0', 1) | s.replace('', '-') | s.replace('l', '') | 'aaa'.replace('a', 'b', 2) | 'ab'.replace('', '.', 2)
s.startswith('Hell') | s.startswith(('x', 'H')) | s.endswith('ld') | s.endswith(('x', 'y')) | s.startswith('W', 7) | s.find('o') | s.find('o', 5) | s.rfind('o') | s.find('zz') | s.index('W') | s.index('zz') | u.find('漢') | s.count('l') | s.count('l', 4) | ''.startswith('') | s.startswith(1)
'abc'.isalpha() | 'ab1'.isalnum() | '12'.isdigit() | '²'.isdigit() | '½'.isnumeric() | '12'.isdecimal() | ''.isdigit() | 'Ab'.isupper() | 'AB1'.isupper() | 'ab1'.islower() | ' \n'.isspace() | 'Hello World'.istitle() | 'x_1'.isidentifier() | '1x'.isidentifier() | u.isascii()
'-'.join(words) | '-'.join(xs) | '5'.zfill(3) | '-5'.zfill(4) | 'x'.center(6, '*') | 'xy'.center(5) | 'x'.ljust(3, '.') ~ '|' | 'x'.rjust(3) | 'TestHook'.removeprefix('Test') | 'TestHook'.removesuffix('Hook') | 'a\tb'.expandtabs(4)
'%s is %d' % ('x', 3) | '%5.2f|' % b | '%-5s|' % 'ab' | '%05d' % 42 | '%x %X %o' % (255, 255, 8) | '%%' % () | '%r' % 'q' | '%+d' % 5 | '%(x)s' % {'x': 1} | '%s' % [1, 2] | '%e' % 12345.678 | '%g' % 0.00001234 | '%d' % 'x' | '%s %s' % ('x',) | '%s' % ('x', 'y') | '%c' % 'z' | '%.3s' % 'abcdef' | '%s' % n
'{} {}'.format(1, 'x') | '{0}{1}{0}'.format('a', 'b') | '{x}'.format(x=4) | '{:>6}|'.format('ab') | '{:06.2f}'.format(3.14159) | '{:,}'.format(1234567) | '{:x}'.format(255) | '{:#x}'.format(255) | '{:^7}|'.format('ab') | '{!r}'.format('q') | '{{}}'.format() | '{:.3}'.format('abcdef') | '{:%}'.format(0.25) | '{:e}'.format(12345.678) | '{0[0]} {1.name}'.format(xs, users[0]) | '{:{}}|'.format('x', 4) | '{}'.format(n) | '{:+d}'.format(3) | '{:_}'.format(1234567) | '{:.3}'.format(1234.5678) | '{:g}'.format(1e10) | '{:b}'.format(5) | '{:d}'.format('x') | '{:*<5}'.format(t)
xs | d | nested | tricky | tricky.floats | n | t | (1,) | () | (1, 'a', none) | {'a': 1, 2: 'b'} | {} | [] | [n, t, 1.0, 'q'] | range(3) | range(1, 7, 2)[1] | range(5)[::-1] | range(5)|list | range(0) | range(200000) | range(3)[5] | {'a': [1, {'b': (2,)}]} | 1.0 | 1e22 | 123456789012345678 | 0.1 + 0.2 | 1/3 | 100.0 | 1e16 | 1e-5
d | tojson | tricky | tojson | html | tojson | d | tojson(indent=2) | xs | tojson(indent=1) | {} | tojson(indent=2) | [] | tojson(indent=4) | nested | tojson(indent=2) | tricky | tojson(ensure_ascii=True) | d | tojson(sort_keys=true) | d | tojson(separators=(',', ':')) | d|tojson(indent=0) | (1, 2) | tojson | 1.0 | tojson | n | tojson | t | tojson | {1: 2, n: 3, t: 4, 1.5: 6} | tojson | range(2) | tojson | d.items() | tojson | u | tojson(indent='\t') | {'x': {'y': []}}|tojson(indent='--')
ws | trim | s | trim('Hd') | 5 | trim | words | join(', ') | xs | join | users | join(',', attribute='name') | words | join(n) | xs | length | s | length | u | length | d | length | 5 | length | words | first | words | last | none | first | none | last | s | first | d | first | xs | list | s | list | d | list
words | sort | words | sort(case_sensitive=true) | words | sort(reverse=true) | xs | sort | users[:3] | sort(attribute='age') | map(attribute='name') | list | users[:3] | sort(attribute='city,name') | map(attribute='name') | list | words | unique | list | words | unique(case_sensitive=true) | list | xs | min | xs | max | none | max | words | min | words|max(case_sensitive=true) | users[:3] | max(attribute='age') | xs | sum | users[:3] | sum(attribute='age') | xs | sum(start=10) | [1.5, 2] | sum | d | dictsort | {'b': 1, 'A': 2} | dictsort | {'b': 1, 'A': 2} | dictsort(true) | {'b': 1, 'A': 2} | dictsort(by='value', reverse=true) | ['a', 1] | sort
xs | reverse | list | s | reverse | xs | reverse | first | users | map(attribute='name') | list | users | map(attribute='age') | list | users | map(attribute='age', default=0) | list | words | map('upper') | list | words | map('replace', 'a', 'A') | join(' ') | xs | map('string') | join('+') | users | selectattr('age') | map(attribute='name') | list | users | selectattr('city', 'equalto', 'Rome') | map(attribute='name') | list | users | rejectattr('city', 'none') | list | length | users | selectattr('age', 'defined') | list | length | xs | select('odd') | list | xs | reject('gt', 1) | list | xs | select | list | users | selectattr('city', 'eq', 'Nowhere') | first | (users | selectattr('city', 'eq', 'Nowhere')) is defined | users | selectattr('name') | length | xs | map('nofilter') | list | xs | select('notest') | list | n | selectattr('age') | list | n | map('upper') | list | missing | reject | list | empty | map(attribute='k') | list | a | select | list
[1,2,3,4,5] | batch(2) | list | [1,2,3,4,5] | batch(2, 'x') | list | [1,2,3,4,5] | slice(3) | list | [1,2,3,4,5] | slice(3, 'x') | list | users | groupby('city') | list | users[:3] | groupby('city') | map(attribute='grouper') | list | d | items | list | missing | items | list | xs | items
s | upper | s | lower | 'foo bar-baz (qux) [a' | title | 'fOO' | capitalize | 5 | upper | n | upper | s | replace('l', 'L') | s | replace('l', 'L', 1) | 11 | replace(1, 2) | lines | indent | lines | indent(2, true) | lines | indent('> ', first=true, blank=true) | 'x' | indent(2) | '' | indent | 'x\n' | indent | 'ab' | center(6) ~ '|' | 'foo bar baz qux' | truncate(9) | 'foo bar baz qux' | truncate(9, true) | 'foo bar baz qux' | truncate(11) | 'foo bar baz qux' | truncate(9, false, '~', 0) | 'a bb ccc' | wordcount | 'the quick brown fox jumps' | wordwrap(10) | 'abcdefghijkl mn' | wordwrap(5) | 'a b/c?é' | urlencode | {'a b': 'c&d', 'e': 1} | urlencode | html | escape | '%s-%s' | format(1, 'x') | '%(q)s' | format(q=1)
'42' | int | '4x' | int | '4x' | int(7) | '3.9' | int | 3.9 | int | -3.9 | int | n | int | '0x1f' | int(base=16) | '1e3' | int | '3.5' | float | 'x' | float | 'x' | float(1.5) | 3 | float | neg | abs | -2.5 | abs | 2.5 | round | 3.5 | round | 2.675 | round(2) | 42 | round | 42.55 | round(1, 'ceil') | 42.55 | round(1, 'floor') | 1234 | round(-2) | 1234.5 | round(-2) | 5 | string | 5 | string | length | 1000 | filesizeformat | 1234567 | filesizeformat | 1234567 | filesizeformat(true) | 1 | filesizeformat | true | int | '' | int(3) | missing|int | missing|float
n | default('q') | n | default('q', true) | '' | d('q', true) | f | default('q') | missing | default | s | safe | d | string | d | attr('keys') | d | attr('z') | users[0] | attr('name') | xs | count | 'a' | e
a is odd | a is even | 4 is even | 6 is divisibleby 3 | 6 is divisibleby(4) | a is number | b is float | a is integer | t is integer | t is boolean | t is number | t is true | f is false | 1 is true | s is string | n is none | n is not none | d is mapping | xs is sequence | s is sequence | d is sequence | xs is iterable | 5 is iterable | missing is iterable | d.items is callable | range is callable | 'a' is lower | 'A' is upper | a is sameas 1 | n is sameas none | 1 is in xs | 'x' is not in xs | a is eq 1 | a is ne 2 | a is lt 2 | a is ge 1 | 'upper' is filter | 'nope' is filter | 'odd' is test | a is equalto(1) | a is greaterthan 0 | a is nope | xs|map('upper') is iterable | not a is none | a is defined if t | a is not defined or t
1 in xs | 9 not in xs | 'ell' in s | 1 in s | 'x' in 5 | 'z' in d.keys() | 1 in range(3) | [1] in [[1], 2] | (1, 2) == (1, 2) | [1] == (1,) | {'a': 1} == {'a': 1.0} | 'a' in n | xs in d | xs == [3, 1, 2] | n == f | 0 == f | '' == n | 1 != 1.0 | 'a' < 1 | n < 1 | [1] + (2,) | [1] * 2 | 'ab' * 3 | 3 * 'ab' | 'ab' * -1 | 'a' + 1 | 1 + 'a' | [] + [1] | {} + {} | -'x' | +t | - t | 'a' 'b' | "it's" | 'tab\there' | 'uni\u00e9\x41' | '\q' | 'a\
b' | '\101'
1 / 0 | 1 // 0 | 5 % 0 | dict(a=1, b=2) | dict({'a': 1}, b=3) | dict([('x', 1)]) | namespace(a=1).a | namespace(a=1).b is defined | namespace({'q': 2}).q | namespace(a=1)['a'] | joiner('|') | raise_exception('boom') | xs.append(1) | d.update({}) | d.pop('z') | xs.append is defined | xs.count(1) | xs.index(2) | xs.index(9) | d.copy() | s.__class__ | s.nope | s.nope() | xs.nope | n.x | n['x'] | 5 .x | t.x | (1).x is defined | s | nofilter | d.items | length | d['a']['k'] | nested[0], a | xs[true] | xs['a'] | xs[1.5] | d[xs] | s['0'] | d.a['k'].0 | ('a', 'b') | s.upper | users[0].name | users[0]['age'] + 1 | 'a' ~ 1 ~ n ~ t ~ [1] | 2 ** 3 ** 2 | -2 ** 2 | 1 - -1 | 1 if 0 else 2 if 0 else 3 | not not t | (t or f) and n | xs | map('int') | sum | 'a,b' . split(',') | [x] | 'é' < 'z' | 'a' <= 'a' | true > false | 1.5 < 2 | 3 >= 3.0 | b is float and b > 2 | 1 ~ 2 * 3
""".strip()

STATEMENTS = [
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ x }};{% endfor %}",
    "{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.previtem is defined }}{{ loop.cycle('a', 'b') }}{{ loop.depth }}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }}{% endfor %}",
    "{% for x in none %}x{% else %}nothing{% endfor %}", "{% for x in xs if x > 1 %}{{ loop.length }}{{ x }}{% else %}no{% endfor %}",
    "{% for x in xs if x > 9 %}{{ x }}{% else %}no{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }},{% endfor %}", "{% for c in u %}{{ c }}.{% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in xs %}{{ a }}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% for x in 5 %}{% endfor %}",
    "{% for x in missing %}x{% else %}e{% endfor %}", "{% for x in n %}x{% endfor %}",
    "{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in xs %}{% for y in xs %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{{ loop.index }}{% endfor %}",
    "{% set q = 1 %}{% for x in xs %}{% set q = q + x %}{{ q }},{% endfor %}{{ q }}",
    "{% set ns = namespace(q=1) %}{% for x in xs %}{% set ns.q = ns.q + x %}{{ ns.q }},{% endfor %}{{ ns.q }}",
    "{% if f %}{% set q = 1 %}{% endif %}{{ q is defined }}", "{% if t %}{% set q = 1 %}{% endif %}{{ q }}",
    "{% for x in xs %}{% if loop.first %}{% set y = x %}{% endif %}{{ y }},{% endfor %}",
    "{% set a, q = 5, 6 %}{{ a }}{{ q }}", "{% set q = (1, 2) %}{{ q }}", "{% set q = 1, 2 %}{{ q }}", "{% set q %}in {{ a }} block{% endset %}[{{ q }}]",
    "{% set q | upper | replace('A', 'b') %}a block{% endset %}[{{ q }}]", "{% set a.b = 1 %}", "{% set ns = namespace() %}{% set ns.x %}text{% endset %}{{ ns.x }}",
    "{% set d.z = 4 %}", "{% set missing.z = 4 %}",
    "{% macro m(x, y=2, z=x) %}{{ x }}-{{ y }}-{{ z }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(y=5, x=4) }}{{ m() }}{{ m(1, z=9) }}",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(q=2) }}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1, x=2) }}",
    "{% macro m(x) %}{{ x }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, q=4) }}", "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}in{% endcall %}",
    "{% macro m() %}[{{ caller('p', 2) }}]{% endmacro %}{% call(x, y) m() %}{{ x }}{{ y }}{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
    "{% set q = 1 %}{% macro m() %}{{ q }}{% endmacro %}{% set q = 2 %}{{ m() }}", "{% for x in xs %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}",
    "{{ m(1) }}{% macro m(x) %}{{ x }}{% endmacro %}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1) | upper ~ m('b').strip() }}", "{% macro m() %}{% endmacro %}{{ m.name }}{{ m }}",
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}banana{% endfilter %}",
    "{% with q = 5, r = a %}{{ q }}{{ r }}{% endwith %}{{ q is defined }}", "{% generation %}g{{ a }}{% endgeneration %}", "{% raw %}{{ not }} {% this %}{% endraw %}",
    "x{%- raw -%}  {{ y }} {%- endraw -%}  z", "{# comment #}a{#- c -#} b", "a{# c #}\nb", "  {# c #}\n  b", "a\n  {%- if t %} x {% endif -%}\n b",
    "a\n  {% if t %}\n  x\n  {% endif %}\nb\n", "a\n  {%+ if t %}\n  x\n  {% endif +%}\nb\n\n", "  {{ a }}\n  {{- a -}}  \n b", "{% if t %}\n\n x{% endif %}\n\ny",
    "  {% if t %}x{% endif %}  {% if t %}y{% endif %}\n", "{{ a }}\n{% set x = 1 %}\n{{ x }}\n", "a\r\nb\r{% if t %}\r\nc{% endif %}", "\n", "", "\n\n", " \n {% if t %} {% endif %} \n",
    "{%- for x in xs %}\n    {{- x }}\n{%- endfor %}", "{% for x in xs -%}\n  {{ x }},\n{%- endfor -%}\n  end", "\t{% if t %}x{% endif %}", "x\t{% if t %}y{% endif %}",
    "{{ '{{' }}{{ '}}' }}{{ '%}' }}", "{{ {'a': {'b': 1}}['a'] }}", "{{ {'a': {'b': 1}} }}", "{% if s == 'x' %}1{% elif a == 1 %}2{% else %}3{% endif %}", "{% if missing %}1{% else %}2{% endif %}",
    "{% if not missing is defined %}1{% endif %}", "{% if 'a' in d and d.a is mapping %}1{% endif %}", "{% if a, b %}x{% endif %}", "{% for i in range(3) %}{{ i }}{% endfor %}",
    "{% for i in range(3, 0, -1) %}{{ i }}{% endfor %}", "{% set it = xs | map('string') %}{{ it | list }}{{ it | list }}", "{% set it = xs | select('odd') %}{{ it | first }}{{ it | list }}",
    "{% for g in users[:3] | groupby('city') %}{{ g.grouper }}:{{ g.list | length }}{{ g[0] }} {% endfor %}", "{% for city, list in users[:3] | groupby('city') %}{{ city }}{{ list | map(attribute='name') | join }}{% endfor %}",
    "{% for x in nested recursive %}{% if x is iterable and x is not string %}({{ loop(x) }}){% else %}{{ x }}{{ loop.depth0 }}{% endif %}{% endfor %}",
    "{% set j = joiner(', ') %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}",
    "{{ raise_exception('no ' ~ s) }}", "{% if t %}{{ raise_exception('bad') }}{% endif %}", "{{ s", "{% if t %}", "{% endif %}", "{{ }}", "{% nope %}", "{{ a b }}", "{% for x %}{% endfor %}",
    "{# open", "{% raw %}x", "{{ 'open }}", "{{ (1 }}", "{{ [1, }}", "{% set 1 = 2 %}", "{% set true = 2 %}", "{% break %}", "{{ a is defined is none }}", "{{ a ? b }}", "{% macro m(x=1, y) %}{% endmacro %}", "{{ 1 if }}", "{{ f(a=1, 2) }}", "{% if %}x{% endif %}",
    "{{ 'x'.join(['a', 'b']) }}{{ ['a', 'b'] | join('x') }}", "{{ users | map(attribute='name') | map('lower') | join(',') }}", "{{ d | dictsort | map(attribute=0) | list }}", "{{ nested | map('last') | list }}",
    "{% for x in [] %}{% endfor %}{{ loop is defined }}", "{% for x in xs %}{% set loop2 = loop %}{% for y in xs %}{{ loop2.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% set x %}{% for i in xs %}{{ i }}{% endfor %}{% endset %}{{ x | length }}", "{%- set ns = namespace(found=false) -%}{%- for m in users -%}{%- if m.name == 'al' -%}{%- set ns.found = true -%}{%- endif -%}{%- endfor -%}{{ ns.found }}",
    "{% set l = [] %}{% for x in xs %}{% set l = l + [x] %}{% endfor %}{{ l }}", "{% set ns = namespace(l=[]) %}{% for x in xs %}{% set ns.l = ns.l + [x * 2] %}{% endfor %}{{ ns.l }}",
    "{% set _ = xs.append(4) %}{{ xs }}", "{% do xs.append(4) %}", "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}",
    "{{ dict(a=1, **{'b': 2}) }}{{ range(*[1, 4]) | list }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 3, 'b': 4}) }}", "{{ strftime_now('%Y') | length }}",
    "{% if (a == 1 or b == 2) and not (f or n) %}ok{% endif %}", "{% if a is defined and a is not none and a > 0 %}ok{% endif %}", "{{ (a if t else b) ~ 'x' }}", "{{ [1, 2, 3,] }}{{ {'a': 1,} }}{{ (1,) }}",
    "{% set x = 'a' -%}   \n{{ x }}", "{{- 'a' -}}\n{{- 'b' }}", "{%- if t -%}\n  a\n{%- endif -%}\n", "x {%- if t %} y {%- endif %} z", "{% for x in xs %}\n{{ x }}\n{% endfor %}\n",
    "{{ tricky.ctrl }}{{ tricky.quote }}", "{{ [tricky.ctrl, tricky.quote, u] }}", "{{ tricky.big }} {{ tricky.big | tojson }} {{ [tricky.big] }}", "{{ 'a' if a == 1 and b else 'b' }}", "{{ 'yes' if s.startswith('H') and 'W' in s }}",
]


def expressions():
    """The pieces of EXPRESSIONS between bars; one that begins with a filter's name belongs to the one before it."""
    filters = set(chat_template_utils._compile_jinja_template("").environment.filters) | {"nofilter"}
    for line in EXPRESSIONS.replace("\\\n", "\\\0").split("\n"):
        row = []
        for piece in line.replace("\0", "\n").split(" | "):
            name = piece.split("(")[0].split(" ~")[0].split(" is ")[0].strip()
            if row and name in filters and piece not in ("d", "e"):  # these are variables, too
                row[-1] += " | " + piece
            else:
                row.append(piece)
        yield from row


def main():
    cases = []
    for source in ["{{ " + e + " }}" for e in expressions()] + STATEMENTS:
        case = {"template": source}
        try:
            case["out"] = chat_template_utils._compile_jinja_template(source).render(**CONTEXT)
        except (Exception, RecursionError) as e:
            case["error"] = f"{type(e).__name__}: {e}"[:120]
        if " object " not in case.get("out", ""):
            cases.append(case)
    json.dump({"context": CONTEXT, "cases": cases}, sys.stdout, ensure_ascii=False, indent=0)
    print()


main()
