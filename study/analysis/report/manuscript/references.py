"""The publications that a method section cites, each only where it is cited."""

from __future__ import annotations

from collections.abc import Iterable

PUBLICATIONS = {
    "Barr et al., 2013": (
        "Barr, D. J., Levy, R., Scheepers, C., & Tily, H. J. (2013). Random effects structure for confirmatory "
        "hypothesis testing: Keep it maximal. *Journal of Memory and Language*, *68*(3), 255–278. "
        "https://doi.org/10.1016/j.jml.2012.11.001"
    ),
    "Borowski et al., 2021": (
        "Borowski, J., Zimmermann, R. S., Schepers, J., Geirhos, R., Wallis, T. S. A., Bethge, M., & Brendel, W. "
        "(2021). Exemplary natural images explain CNN activations better than state-of-the-art feature visualization. "
        "*International Conference on Learning Representations*. https://arxiv.org/abs/2010.12606"
    ),
    "Folke et al., 2021": (
        "Folke, T., Li, Z., Sojitra, R. B., Yang, S. C.-H., & Shafto, P. (2021). *Explainable AI for natural "
        "adversarial images*. arXiv. https://doi.org/10.48550/arXiv.2106.09106"
    ),
    "Holm, 1979": (
        "Holm, S. (1979). A simple sequentially rejective multiple test procedure. *Scandinavian Journal of "
        "Statistics*, *6*(2), 65–70."
    ),
    "Kaernbach, 1991": (
        "Kaernbach, C. (1991). Simple adaptive testing with the weighted up-down method. *Perception & Psychophysics*, "
        "*49*(3), 227–229. https://doi.org/10.3758/BF03214307"
    ),
    "Levitt, 1971": (
        "Levitt, H. (1971). Transformed up-down methods in psychoacoustics. *The Journal of the Acoustical Society of "
        "America*, *49*(2B), 467–477. https://doi.org/10.1121/1.1912375"
    ),
    "Matuschek et al., 2017": (
        "Matuschek, H., Kliegl, R., Vasishth, S., Baayen, H., & Bates, D. (2017). Balancing Type I error and power in "
        "linear mixed models. *Journal of Memory and Language*, *94*, 305–315. "
        "https://doi.org/10.1016/j.jml.2017.01.001"
    ),
    "McCullagh, 1980": (
        "McCullagh, P. (1980). Regression models for ordinal data. *Journal of the Royal Statistical Society: Series "
        "B*, *42*(2), 109–142. https://doi.org/10.1111/j.2517-6161.1980.tb01109.x"
    ),
    "Nakagawa et al., 2017": (
        "Nakagawa, S., Johnson, P. C. D., & Schielzeth, H. (2017). The coefficient of determination R² and intra-class "
        "correlation coefficient from generalized linear mixed-effects models revisited and expanded. *Journal of the "
        "Royal Society Interface*, *14*(134), 20170213. https://doi.org/10.1098/rsif.2017.0213"
    ),
    "Satterthwaite, 1946": (
        "Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components. *Biometrics "
        "Bulletin*, *2*(6), 110–114. https://doi.org/10.2307/3002019"
    ),
    "van der Linden & Glas, 2010": (
        "van der Linden, W. J., & Glas, C. A. W. (Eds.). (2010). *Elements of adaptive testing*. Springer. "
        "https://doi.org/10.1007/978-0-387-85461-8"
    ),
    "Williams, 1949": (
        "Williams, E. J. (1949). Experimental designs balanced for the estimation of residual effects of treatments. "
        "*Australian Journal of Scientific Research A*, *2*(2), 149–168. https://doi.org/10.1071/CH9490149"
    ),
    "Zimmermann et al., 2021": (
        "Zimmermann, R. S., Borowski, J., Geirhos, R., Bethge, M., Wallis, T. S. A., & Brendel, W. (2021). How well do "
        "feature visualizations support causal understanding of CNN activations? *Advances in Neural Information "
        "Processing Systems*, *34*. https://arxiv.org/abs/2106.12447"
    ),
    "Zimmermann et al., 2023": (
        "Zimmermann, R. S., Klein, T., & Brendel, W. (2023). Scale alone does not improve mechanistic interpretability "
        "in vision models. *Advances in Neural Information Processing Systems*, *36*. "
        "https://arxiv.org/abs/2307.05471"
    ),
}
"""By the words of the citation, in the order of a list of references; `*` surrounds italics."""


def list_references(paragraphs: Iterable[str]) -> list[str]:
    """List the references of the publications that the paragraphs cite."""
    text = " ".join(paragraphs)
    return [reference for citation, reference in PUBLICATIONS.items() if citation in text]
