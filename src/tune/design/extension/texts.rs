//! The texts used by checks: contexts of blocks, and texts without blocks.

/// The text from a block up to the next one: every ending of an atom, and every beginning of text between atoms.
pub const CONTEXTS: [&str; 18] = [
    "[C]",
    "1[c]",
    "%10[N+]",
    "([O-]",
    ")[C@@H]",
    "=[C@]",
    "#[N]",
    "-[nH]",
    "/[C@H]",
    "\\[NH2+]",
    ".[Fe+2]",
    ":[13CH3]",
    "$[Cl]",
    "~[2H]",
    ")([*]",
    "12(=[S@@+]",
    "[/CONFORMER]\n[CONFORMER][C]",
    " ",
];

/// The number of contexts.
pub(crate) const ALL_CONTEXTS: usize = CONTEXTS.len();

/// The text before the first block: nothing, a tag, or an atom.
pub const HEADS: [&str; 3] = ["", "[CONFORMER]", "[SMILES]C[/SMILES][CONFORMER][C]"];

/// Texts without blocks.
pub const PLAIN: [&str; 16] = [
    "The quick brown fox jumps over 13 lazy dogs; it's 3.14159, isn't it? We'll see: -273.15 °C, 1,000,000.00 < 2e6 > 7.",
    "fn main() {\n    let x: Vec<u32> = (0..=255).map(|i| i << 2).collect(); // <1.5, 2.5, 3.5>\n\tprintln!(\"{:?}\", x);\n}\n",
    "if (a<-1.25 && b>0.5000) { m[i][j] -= v->x[12]*0.0001; }\r\n\r\n#include <vector>\nfor(int i=0;i<10;++i) s+=\"<\";",
    "SELECT * FROM t WHERE x <> -1.0000 AND y < 12.3456; -- <12.3456,7.8901>\n<html><body x=\"1.0\">&lt;0.5&gt;</body></html>",
    "C[C@@H](N)C(=O)O.[Na+].[Cl-] c1ccc2[nH]ccc2c1 F/C=C\\F CC(C)(C)OC(=O)N1CCC(CC1)%12CC%12 [13CH3][2H] O=C=O",
    "[C]<>[C]<>=[O]<> [SMILES]CC=O[/SMILES] [CONFORMER] [/CONFORMER] <|im_start|>user\nHello<|im_end|>\n",
    "Grüße aus Köln, ça va? Señor Ñandú; São Paulo; Łódź; žluťoučký kůň; İstanbul'da ığdır.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ταχίστη αλώπηξ βαφής ψημένη γη.",
    "我能吞下玻璃而不伤身体。2024年1月15日，价格为￥1,234.56元。いろはにほへと ちりぬるを。키스의 고유조건은 입술끼리 만나야 한다.",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ٠١٢٣٤٥٦٧٨٩ דג סקרן שט בים מאוכזב ולפתע מצא חברה",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण १२३४.५६ เป็นมนุษย์สุดประเสริฐเลิศคุณค่า",
    "e\u{301} \u{fb01} ≤ ≥ ≠ ½ x² ∑ 😀👩‍👩‍👧‍👦 \u{200b}\u{feff} \u{1d400} <\u{338} >\u{338} a\u{30a}",
    "   leading,  double   spaces\t\ttabs\n\n\n\nnewlines \r\n trailing   ",
    "<1.0000, 2.0000, 3.0000> <1.000,2.000,3.000> <1.00000,2.00000,3.00000> <a,b,c> <-.5,1.,2> < 0.0000,0.0000,0.0000>",
    "0 00 000 0000 1 12 123 1234 12345 1.2 1.23 -1.2345 ,1.2345 ,-1. 9> <9 99> <-99 -0. ,-14. <-14. 23, 345,",
    "{\"x\": -1.2345, \"y\": [0.0001, 14.9999], \"z\": \"<\", \"w\": \">\"}\n---\n- 1.0000\n- -2.0000\n",
];
