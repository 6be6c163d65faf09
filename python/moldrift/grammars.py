"""Writes the grammars of many molecules into one file, as ``drift export-grammar`` does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from moldrift.automaton import Automaton
from moldrift.errors import DriftError
from moldrift.sources import EncodingLike


def export_grammar(
    tokenizer: Any,
    smiles: str | Iterable[str],
    output: str | os.PathLike[str] | None = None,
    *,
    dialect: str | None = None,
    encoding: EncodingLike | None = None,
    format: str = "lark",
    eos_token_id: int | list[int] | None = None,
    conformers: int = 1,
    opened: bool = False,
    prompt_end: str | None = None,
) -> list[dict[str, Any]]:
    """The grammar of each molecule, in token ids, for engines that follow grammars.

    >>> [line] = export_grammar("qwen-like", "CO", format="ebnf")
    >>> line["smiles"], line["skeleton"], line["grammar"].splitlines()[0].split(" ::=")[0]
    ('CO', '[C]<>[O]<>', 'root')

    Args:
        tokenizer: as for :class:`moldrift.Automaton`, or an automaton.
        smiles: one molecule or several.
        output: a file for one line of JSON per molecule; it appears complete or not at all.
        dialect: how numbers are written, as for :class:`moldrift.Automaton`.
        encoding: any encoding, as for :class:`moldrift.Automaton`.
        format: ``lark`` (llguidance), ``ebnf`` (XGrammar), or ``json``, the tables.
        eos_token_id: the id that ends a text; only the tables contain it.
        conformers, opened, prompt_end: as for :class:`moldrift.Automaton`.

    Returns:
        ``{"smiles": …, "skeleton": …, "grammar": …}`` for each molecule, in their order; with ``prompt_ids`` where a token
        crosses the end of the prompt ``[SMILES]…[/SMILES]``. Then give an engine these ids instead of the prompt's text.

    Raises:
        InvalidSmiles: if one of ``smiles`` is not a SMILES; nothing is written then.
        TokenizerRefused: if the automaton cannot be exact for this tokenizer.
        DriftError: if options are given beside an automaton, which has its own, or a token crosses ``prompt_end``.
    """
    automaton = tokenizer if isinstance(tokenizer, Automaton) else None
    options = (dialect, encoding, eos_token_id, prompt_end)
    plain = all(one is None for one in options) and conformers == 1 and not opened
    if automaton is not None and not plain:
        problem = "is an automaton, which has its encoding, its end of text and its conformers"
        raise DriftError(f"tokenizer: {problem}; leave these options out")
    automaton = automaton or Automaton(
        tokenizer,
        dialect,
        encoding=encoding,
        eos_token_id=eos_token_id,
        conformers=conformers,
        opened=opened,
        prompt_end=prompt_end,
    )
    lines = [_line(automaton, one, format) for one in ([smiles] if isinstance(smiles, str) else smiles)]
    if output is not None:
        waiting = f"{os.fspath(output)}.part"
        with open(waiting, "w", encoding="utf-8") as file:
            file.writelines(
                json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines
            )
        os.replace(waiting, output)
    return lines


def _line(automaton: Automaton, smiles: str, format: str) -> dict[str, Any]:
    constraint = automaton.constraint(smiles)
    grammar = constraint.grammar(format)
    opened = "[CONFORMER]" if automaton.opened else ""
    ids = automaton.prompt_ids_apart(f"{automaton.prompt_end or f'[SMILES]{smiles}[/SMILES]'}{opened}")
    if ids is not None and automaton.prompt_end is not None:
        raise DriftError(
            f"prompt_end: a token of this tokenizer crosses the end of {automaton.prompt_end!r:.60}; end prompts in a line "
            "break or a special token"
        )
    return {
        "smiles": smiles,
        "skeleton": constraint.skeleton,
        **({} if ids is None else {"prompt_ids": ids}),
        "grammar": json.loads(grammar) if format == "json" else grammar,
    }
